/** `found` and `join`: permission for the first start of a gate or manager with an empty data directory. */

import { EXIT_FAILURE } from "../../host/exit-codes.ts";
import { allowFirstStart, type FirstStart } from "../../ledger/founding.ts";
import { complain } from "../print.ts";

interface NewNode {
  readonly name: string;
  readonly dataDir: string;
}

export async function allowStart(
  service: "gate" | "manager",
  way: FirstStart,
  { dataDir, name }: NewNode,
): Promise<void> {
  const problem = await allowFirstStart(dataDir, way);
  if (problem === null) {
    const what = way === "found" ? "begin" : "join those that run";
    process.stdout.write(`${name} may ${what} with ${dataDir}\n`);
    return;
  }
  complain(`hyperscale ${service} ${way}: ${problem}`);
  process.exitCode = EXIT_FAILURE;
}
