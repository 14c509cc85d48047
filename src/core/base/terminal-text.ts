/**
 * Text as a terminal sees it: how many cells a character takes, cutting to a width, and neutralizing text from users
 * and servers (escape sequences in a step name or a console.log must never reach the terminal).
 *
 * Widths are those of Unicode's East Asian Width with emoji wide; ambiguous characters are narrow. Terminals disagree
 * on emoji, so the painter moves the cursor explicitly after every wide one.
 */

const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x2329, 0x232a],
  [0x23e9, 0x23ec],
  [0x25fd, 0x25fe],
  [0x2614, 0x2615],
  [0x2648, 0x2653],
  [0x26aa, 0x26ab],
  [0x2705, 0x2705],
  [0x270a, 0x270b],
  [0x2728, 0x2728],
  [0x274c, 0x274c],
  [0x2753, 0x2755],
  [0x2757, 0x2757],
  [0x2795, 0x2797],
  [0x2b1b, 0x2b1c],
  [0x2b50, 0x2b50],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18aff],
  [0x1b000, 0x1b2ff],
  [0x1f004, 0x1f004],
  [0x1f0cf, 0x1f0cf],
  [0x1f18e, 0x1f18e],
  [0x1f191, 0x1f19a],
  [0x1f200, 0x1f265],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f7e0, 0x1f7eb],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
];

const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]$/u;

/** Cache of widths in the basic plane, plus one: a frame asks thousands of times. */
const known = new Uint8Array(0x1_0000);

/** Cells taken by a code point: 0 (never drawn), 1 or 2. */
export function charWidth(code: number): number {
  if (code < 0x7f) return code < 0x20 ? 0 : 1;
  if (code > 0xffff) return findWidth(code);
  const seen = known[code] ?? 0;
  if (seen > 0) return seen - 1;
  const width = findWidth(code);
  known[code] = width + 1;
  return width;
}

function findWidth(code: number): number {
  if (inRanges(code)) return 2;
  return INVISIBLE.test(String.fromCodePoint(code)) ? 0 : 1;
}

function inRanges(code: number): boolean {
  let low = 0;
  let high = WIDE.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = WIDE[middle];
    if (range === undefined) return false;
    if (code < range[0]) high = middle - 1;
    else if (code > range[1]) low = middle + 1;
    else return true;
  }
  return false;
}

export function textWidth(text: string): number {
  let width = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.codePointAt(index) ?? 0;
    if (code > 0xffff) index += 1;
    width += charWidth(code);
  }
  return width;
}

/** At most `width` cells; what is cut ends in "…". */
export function shorten(text: string, width: number): string {
  // A string never has more cells than twice its length, and mostly exactly its length.
  if (text.length * 2 <= width || textWidth(text) <= width) return text;
  if (width <= 0) return "";
  let used = 0;
  let kept = "";
  for (const char of text) {
    const cells = charWidth(char.codePointAt(0) ?? 0);
    if (used + cells > width - 1) break;
    used += cells;
    kept += char;
  }
  return `${kept}…`;
}

/** Fits and pads to exactly `width` cells. */
export function padded(text: string, width: number, align: "left" | "right" = "left"): string {
  const kept = shorten(text, width);
  const gap = " ".repeat(Math.max(0, width - textWidth(kept)));
  return align === "left" ? kept + gap : gap + kept;
}

const ESCAPES = new RegExp(
  [
    "\\u001b\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)?", // OSC … BEL or ST
    "[\\u001b][PX^_][^\\u001b]*(?:\\u001b\\\\)?", // DCS, SOS, PM, APC
    "(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]?", // CSI
    "\\u001b[ -/]*[0-~]?", // other escapes
  ].join("|"),
  "g",
);
const PLAIN = /^[\x20-\x7e]*$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** One line that is safe to print: no escape sequence, no control character, tabs as spaces. */
export function clean(text: string): string {
  if (PLAIN.test(text)) return text;
  return text
    .replace(ESCAPES, "")
    .replace(/[\t\r\n]+/g, "  ")
    .replace(UNSEEN, "")
    .normalize("NFC");
}

/** Breaks at spaces into lines of at most `width` cells; a longer word is cut hard. */
export function wrap(text: string, width: number): string[] {
  const limit = Math.max(1, width);
  const lines: string[] = [];
  let line = "";
  for (const word of clean(text).split(" ")) {
    const joined = line === "" ? word : `${line} ${word}`;
    if (textWidth(joined) <= limit) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    while (textWidth(line) > limit) {
      const head = takeCells(line, limit);
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  if (line !== "" || lines.length === 0) lines.push(line);
  return lines;
}

/** The longest start of at most `width` cells; at least one character, so that callers get on. */
function takeCells(text: string, width: number): string {
  let used = 0;
  let kept = "";
  for (const char of text) {
    used += charWidth(char.codePointAt(0) ?? 0);
    if (used > width && kept !== "") break;
    kept += char;
  }
  return kept;
}
