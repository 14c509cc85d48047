/** Comments and test names in plain English: how a comment may not open, and words with a better one. */

import type { Problem } from "./graph-checks.ts";

/** Name the subject instead: "Share of one core", or begin with the verb: "Returns …". */
const OPENINGS = /^(It|Its|Who|Whoever|Whose|Those|What|Of|Nobody)\b/;

/** Words that readers stumble over, and what to write. */
const WORDS: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\btold\b/i, "reported, notified"],
  [/\bheard of\b/i, "received, last seen"],
  [/\bforgone\b/i, "abandoned"],
  [/\bforsaken\b/i, "orphaned"],
  [/\bmend(s|ed|ing)?\b/i, "fix"],
  [/\banew\b/i, "again"],
  [/\bagain and again\b/i, "repeatedly"],
  [/\bdealt\b/i, "assigned"],
  [/\bwhoever\b/i, "the client, the peer, any caller"],
  [/\bof no use\b/i, "ignored, dropped"],
  [/\bno say\b/i, "ignored"],
  [/\b(is|are|was|were) had\b/i, "available"],
  [/\bso (long|many|often) as\b/i, "while, as many as"],
];

interface Passage {
  readonly line: number;
  readonly text: string;
  readonly isComment: boolean;
}

/** Comments, with neighbouring line comments as one, and names of tests. */
function passagesOf(lines: readonly string[]): Passage[] {
  const passages: Passage[] = [];
  let open: { line: number; text: string; isBlock: boolean } | null = null;
  const close = (): void => {
    if (open !== null) passages.push({ line: open.line, text: open.text, isComment: true });
    open = null;
  };
  lines.forEach((text, index) => {
    const line = index + 1;
    const block = /^\s*\/\*+\s?(.*)$/.exec(text);
    if (open?.isBlock !== true && block !== null) {
      close();
      open = { line, text: "", isBlock: true };
    }
    if (open?.isBlock === true) {
      const words = text.replace(/^\s*(\/\*+|\*(?!\/))\s?/, "").replace(/\s*\*\/.*$/, "");
      open.text = `${open.text} ${words}`.trim();
      if (text.includes("*/")) close();
      return;
    }
    const single = /^\s*\/\/\s?(.*)$/.exec(text);
    if (single !== null) {
      open ??= { line, text: "", isBlock: false };
      open.text = `${open.text} ${single[1]}`.trim();
      return;
    }
    close();
    const name = /\b(?:it|test|describe)(?:\.\w+(?:\(.*?\))?)?\(\s*(["'`])(.*?)\1/.exec(text);
    if (name !== null) passages.push({ line, text: name[2] ?? "", isComment: false });
  });
  close();
  return passages;
}

export function languageProblems(file: string, lines: readonly string[]): Problem[] {
  return passagesOf(lines).flatMap(({ line, text, isComment }) => {
    const opening = isComment ? OPENINGS.exec(text) : null;
    const found = WORDS.filter(([word]) => word.test(text));
    return [
      ...(opening === null ? [] : [`a comment opens with "${opening[1]}": name its subject`]),
      ...found.map(([word, instead]) => `"${word.exec(text)?.[0]}": write ${instead}`),
    ].map((message) => ({ file, line, rule: "language", message }));
  });
}
