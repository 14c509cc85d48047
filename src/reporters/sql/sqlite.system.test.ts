/** SQLite without a driver for this version of Node; `npm run test:reporters` reads the file. */

import { expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../registry.ts";

const run = syntheticRun({ seed: "sqlite", seconds: 2, rate: 0.2 });
/** Node 20 has none, and the package is not a development dependency. */
const cannot =
  process.getBuiltinModule("node:sqlite") === undefined
    ? "report sqlite on this version of Node needs the package node-sqlite3-wasm, which is not " +
      "installed: npm install node-sqlite3-wasm"
    : "report sqlite: unable to open database file";

it("says before the run that it cannot work", async () => {
  const context = { env: {}, onProblem: () => {} };
  const reporting = await openReporting(["sqlite=nowhere/results.sqlite"], context);
  await expect(reporting.start(run)).rejects.toThrow(cannot);
});

it.each([
  ["sqlite=x.sqlite,table=a;drop", "table is a name of small letters"],
  ["sqlite", "write sqlite=FILE"],
])("rejects %s", async (text, problem) => {
  await expect(openReporting([text], { env: {}, onProblem: () => {} })).rejects.toThrow(problem);
});
