/** Folders that exist as long as the benchmark. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders: string[] = [];

/** One listener for all of them: Node warns of a leak from eleven on. */
process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-bench-"));
  folders.push(folder);
  return folder;
}
