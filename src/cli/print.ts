/**
 * Output of the commands to a terminal. Text from servers, peers, files and users may contain escape codes that a
 * terminal would obey; they are removed here. Tables clean their cells themselves (`core/base/text-table.ts`).
 */

import { clean } from "../core/base/terminal-text.ts";

/** Writes one or several lines to stderr. */
export function complain(text: string): void {
  process.stderr.write(`${cleanLines(text)}\n`);
}

/** Cleans line by line, so that lines stay lines. Colours are added around clean text. */
function cleanLines(text: string): string {
  return text.split("\n").map(clean).join("\n");
}

/** Invisible characters that JSON leaves as they are: DEL, the C1 controls, formatting, line separators. */
const UNSEEN = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Serialises a value so that nothing in it can control a terminal. */
export function jsonText(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent));
}

/** For a line that is JSON already. */
export function escapeJson(json: string): string {
  return json.replace(UNSEEN, (unseen) => {
    const units = Array.from({ length: unseen.length }, (_, at) => unseen.charCodeAt(at));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  });
}
