/** Ctrl-C of a run by the command line: partial results are kept and marked as such, and no process is left. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { childrenOf, Scratch, until } from "./cli.ts";

let demo: DemoTarget;
let here: Scratch;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  here = new Scratch();
});
afterAll(async () => {
  here.remove();
  await demo.close();
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("Ctrl-C", () => {
  it("exits with 130, complete files marked as interrupted, and no process left", async () => {
    const before = demo.stats().requests;
    const run = here.start([
      "run",
      demo.url,
      "--vus",
      "8",
      "--duration",
      "10m",
      "--ui",
      "ci",
      "--out",
      "out",
    ]);
    await until(() => demo.stats().requests > before + 200);
    const cores = childrenOf(run);
    run.child.kill("SIGINT");
    const { code, stdout } = await run.done;
    expect(code).toBe(130);
    expect(here.files()).toEqual(["junit.xml", "report.html", "summary.json"]);
    const summary = here.summary();
    expect(summary.verdict).toBe("interrupted");
    expect(summary.workflows[0]).toMatchObject({ status: "interrupted" });
    const [step] = summary.workflows[0]?.steps ?? [];
    expect(step?.requests).toBe(demo.stats().requests - before);
    expect(summary.durationSeconds).toBeLessThan(500);
    expect(here.read("out/report.html")).toContain("interrupted");
    expect(here.read("out/junit.xml")).toContain("</testsuites>");
    expect(stdout).toMatch(/INTERRUPTED/i);
    expect(cores.length).toBeGreaterThan(0);
    expect(cores.filter(alive)).toEqual([]);
  });

  it("while a file still loads ends at once, with nothing written", async () => {
    here.write(
      "slow-load.mjs",
      "console.log('loading'); await new Promise((r) => setTimeout(r, 250000));\n",
    );
    const run = here.start(["run", "slow-load.mjs", "--ui", "ci", "--out", "never"]);
    await until(() => run.text().includes("loading"));
    run.child.kill("SIGINT");
    const { code, stderr } = await run.done;
    expect(code).toBe(130);
    expect(stderr).toMatch(/interrupted before the run began/);
    expect(here.files(".")).not.toContain("never");
  });
});
