/** SQL reporters without a server; `npm run test:reporters` runs them against real ones. */

import { expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../registry.ts";

const run = syntheticRun({ seed: "sql", seconds: 2, rate: 0.2 });

async function open(text: string, url = "postgres://ada:pa55word-1@127.0.0.1:9/load") {
  return openReporting([text], { env: { PGURL: url }, onProblem: () => {} });
}

it("leaves the run unchanged when no database answers, and names it without its password", async () => {
  // Loading the driver takes a busy machine longer than an answer.
  await import("pg");
  const reporting = await open("postgres=env:PGURL,deadline=4s");
  await reporting.start(run);
  const { reports, verdict } = await reporting.finish(run);
  expect(verdict).toBe(run.verdict);
  expect(reports?.[0]).toMatchObject({ target: "env:PGURL", sent: 0 });
  expect(reports?.[0]?.problem).toContain("ECONNREFUSED");
  expect(JSON.stringify(reports)).not.toContain("pa55word-1");
});

it.each([
  ["postgres=env:PGURL,table=a;drop", "table is a name of small letters"],
  ["postgres=env:NONE", "the environment has no variable NONE"],
  ["postgres=postgres://ada:pw@db/load", "credentials do not go on a command line"],
  ["postgres=mysql://db/load", "its address must begin with postgres://"],
])("rejects %s", async (text, problem) => {
  await expect(open(text)).rejects.toThrow(problem);
});
