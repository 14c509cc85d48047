/** Raw terminal input as keys. Unknown sequences are dropped completely, not read as letters. */

export type Key =
  | "pause"
  | "more"
  | "less"
  | "quit"
  | "help"
  | "open"
  | "up"
  | "down"
  | "escape"
  | "interrupt";

const PLAIN: Readonly<Record<string, Key>> = {
  p: "pause",
  P: "pause",
  " ": "pause",
  "+": "more",
  "=": "more",
  "-": "less",
  _: "less",
  q: "quit",
  Q: "quit",
  "?": "help",
  h: "help",
  o: "open",
  O: "open",
  k: "up",
  j: "down",
  "\t": "down",
  "\x03": "interrupt",
};

const SEQUENCES: Readonly<Record<string, Key>> = {
  "\x1b[A": "up",
  "\x1bOA": "up",
  "\x1b[B": "down",
  "\x1bOB": "down",
  "\x1b[Z": "up",
  "\x1b": "escape",
};

// CSI …, SS3 x, Alt-x, or a lone Escape; then any single character.
const TOKEN = /\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[^[O\x1b]|\x1b|[\s\S]/gu;

export function parseKeys(input: string): Key[] {
  const keys: Key[] = [];
  for (const [token] of input.matchAll(TOKEN)) {
    const key = SEQUENCES[token] ?? PLAIN[token];
    if (key !== undefined) keys.push(key);
  }
  return keys;
}
