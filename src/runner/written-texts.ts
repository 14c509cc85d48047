/** String literals of a bundle, against which names that only a running body knows are checked. */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { WrittenTexts } from "../core/load/results/threshold-names.ts";

/** The map at the end of the bundle repeats every source. */
const MAP_COMMENT = "\n//# sourceMappingURL=";
/** Long enough for any name. */
const TEXTS = /(["'`])([^"'`\\\n]{1,80})\1/g;

export async function writtenTexts(bundle: string): Promise<WrittenTexts> {
  const whole = await readFile(fileURLToPath(bundle), "utf8");
  const end = whole.lastIndexOf(MAP_COMMENT);
  const code = end < 0 ? whole : whole.slice(0, end);
  return {
    has: (text) => ['"', "'", "`"].some((quote) => stands(code, quote + text + quote)),
    get all() {
      return [...new Set([...code.matchAll(TEXTS)].map((found) => found[2] ?? ""))];
    },
  };
}

/** Ignores literals in which a threshold itself quotes the name: latency{step="pay now"}. */
function stands(code: string, quoted: string): boolean {
  for (let at = code.indexOf(quoted); at >= 0; at = code.indexOf(quoted, at + 1))
    if (!/[=\\]/.test(code[at - 1] ?? "")) return true;
  return false;
}
