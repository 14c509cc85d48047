/** Results of runs, as given to commands: a summary.json, or its folder. */

import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { RunSummary } from "../core/load/results/model.ts";

type Read =
  | { readonly ok: true; readonly summary: RunSummary; readonly folder: boolean }
  | { readonly ok: false; readonly problem: string };

export async function readSummary(path: string): Promise<Read> {
  // Loaded here: no other command should wait for a decoder it does not use.
  const { decodeSummary } = await import("../reporters/file/schema.ts");
  try {
    const folder = (await stat(path)).isDirectory();
    const decoded = decodeSummary(
      await readFile(folder ? join(path, "summary.json") : path, "utf8"),
    );
    return decoded.ok
      ? { ...decoded, folder }
      : { ok: false, problem: `${path} ${decoded.problem}` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "there is no such file" : message;
    return {
      ok: false,
      problem: `cannot read ${path}: ${reason}. Give the summary.json of a run; \`--out DIR\` writes one.`,
    };
  }
}
