/** Files as reporters: written once, complete, and rejected before the run where they cannot be written. (REP-2) */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { allReporters, openReporting } from "../registry.ts";

const run = syntheticRun({ seed: "files", seconds: 2, rate: 0.2 });
const context = { env: {}, onProblem: () => {} };
const folder = mkdtempSync(join(tmpdir(), "hyperscale-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// `npm run build` makes the report page.
const NAMES = ["json", "junit", "csv", "csv-series", "xml", "markdown", "gitlab", "ndjson"];

it("covers every file", async () => {
  const [files] = await allReporters();
  const names = files?.definitions.map(({ name }) => name) ?? [];
  expect([...NAMES, "html", "github", "samples"].sort()).toEqual(names.sort());
});

describe.each(NAMES)("%s", (name) => {
  const file = join(folder, name, "out");

  it("is written completely when the run has finished, however often it is closed", async () => {
    const reporting = await openReporting([`${name}=${file}`], context);
    await reporting.start(run);
    const [first, second] = await Promise.all([reporting.finish(run), reporting.finish(run)]);
    await reporting.abandon();
    expect(second).toBe(first);
    const { reports, ...rest } = first;
    expect(rest).toEqual(run);
    expect(reports?.[0]).toMatchObject({ reporter: name, dropped: 0, problem: null });
    expect(readFileSync(file, "utf8").length).toBeGreaterThan(100);
    expect(readdirSync(join(folder, name))).toEqual(["out"]);
  });

  it("leaves nothing behind when the run never began", async () => {
    const unused = join(folder, `${name}-unused`);
    const reporting = await openReporting([`${name}=${join(unused, "out")}`], context);
    await reporting.start(run);
    await reporting.abandon();
    expect(() => readFileSync(join(unused, "out"))).toThrow("ENOENT");
  });
});

describe("the summary of a job", () => {
  const file = join(folder, "step-summary.md");
  beforeAll(() => writeFileSync(file, "before\n"));

  it("is appended to the output of earlier steps", async () => {
    const env = { GITHUB_STEP_SUMMARY: file };
    const reporting = await openReporting(["github=,annotations=false"], { ...context, env });
    await reporting.start(run);
    await reporting.finish(run);
    expect(readFileSync(file, "utf8")).toMatch(/^before\n## /);
  });
});
