/** Child side of the pool: a seed in, its result out. */

import { hash } from "node:crypto";
import { useSha256 } from "../../src/core/base/sha256.ts";
import type { RunResult } from "../membership/run.ts";

export function serveRuns<Options>(run: (options: Options) => RunResult): void {
  useSha256((message) => hash("sha256", message, "buffer"));
  process.on("message", ({ options }: { readonly options: Options }) => {
    const before = process.cpuUsage();
    const result = run(options);
    const { user, system } = process.cpuUsage(before);
    process.send?.({ result, options, cpuMs: (user + system) / 1_000 });
  });
}
