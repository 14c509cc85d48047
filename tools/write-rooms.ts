/**
 * Writes the import table of docs/internals/modules.md from tools/rooms.ts, so that the two cannot disagree.
 *
 *   npx tsx tools/write-rooms.ts
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rooms } from "./rooms.ts";

const BEGIN = "<!-- rooms: written by tools/write-rooms.ts -->";
const END = "<!-- /rooms -->";
const COLUMNS = 112;

/** The page with the table as `rooms.ts` has it. */
export function withRoomTable(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the page has no ${BEGIN} … ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n\`\`\`text\n${roomTable()}\n\`\`\`\n\n${page.slice(end)}`;
}

function roomTable(): string {
  const width = Math.max(...rooms.map(({ name }) => name.length)) + 2;
  const head = `${"room".padEnd(width)}${"".padEnd(6)}may import`;
  const lines = rooms.map(({ imports, name, pure }) => {
    const start = `${name.padEnd(width)}${(pure ? "pure" : "").padEnd(6)}`;
    return wrap(start, imports.length === 0 ? ["nothing"] : imports);
  });
  return [head, ...lines].join("\n");
}

/** Words behind `start`, on as many lines as they need, indented alike. */
function wrap(start: string, words: readonly string[]): string {
  const lines: string[] = [];
  let line = start;
  words.forEach((word, at) => {
    const text = at === words.length - 1 ? word : `${word}, `;
    if ((line + text).trimEnd().length > COLUMNS) {
      lines.push(line.trimEnd());
      line = " ".repeat(start.length);
    }
    line += text;
  });
  return [...lines, line.trimEnd()].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = fileURLToPath(new URL("../docs/internals/modules.md", import.meta.url));
  writeFileSync(path, withRoomTable(readFileSync(path, "utf8")));
}
