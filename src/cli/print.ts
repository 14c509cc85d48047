/**
 * The way of the commands to a terminal. What servers, peers, files and users gave may hold escape codes
 * that a terminal would obey; here they end. Tables clean their cells themselves (`core/base/text-table.ts`).
 */

import { clean } from "../core/base/terminal-text.ts";

/** On stderr, a line or several. */
export function complain(text: string): void {
  process.stderr.write(`${cleanLines(text)}\n`);
}

/** Line by line, so that lines stay lines. Colours are put around what is clean. */
function cleanLines(text: string): string {
  return text.split("\n").map(clean).join("\n");
}

/** What JSON leaves as it is and nobody can see: DEL, the C1 controls, formatting, separators of lines. */
const UNSEEN = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The same value, and nothing in it can steer a terminal. */
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
