/**
 * Bundles a module and all it imports into one file of plain JavaScript, for long-running processes: a loader that
 * compiles each module by itself also keeps the name of every function, each time one is made.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

/** Returns the path of the file, which is removed when this process exits. */
export function bundleOf(module: URL): string {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-sim-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, "worker.mjs");
  buildSync({
    ...{ entryPoints: [fileURLToPath(module)], outfile, bundle: true, sourcemap: "inline" },
    ...{ platform: "node", format: "esm", target: "node20", logLevel: "warning" },
  });
  return outfile;
}
