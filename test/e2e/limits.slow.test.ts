/** Limits of a run from outside, in real processes: limits, an aborting threshold, code that stops the run. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { Scratch, stepOf, until } from "./cli.ts";

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

const head = 'import { http, workflow } from "hyperscalejs";\n';

describe("--timeout", () => {
  it("ends every workflow with results, and the run does not pass", async () => {
    here.write(
      "long.ts",
      `${head}const home = http.get("${demo.url}");
export const open = workflow("open", { rate: 50, duration: "1h", warmup: "200ms" }).step("home", home);
export const closed = workflow("closed", { vus: 2, duration: "1h", pacing: "20ms" }).step("home", home);
export const later = workflow("later", { vus: 1, iterations: 1, startAfter: "50m" }).step("home", home);`,
    );
    const { code, stdout } = await here.run(
      ...["run", "long.ts", "--timeout", "2s", "--ui", "ci", "--out", "out", "--cores", "1"],
    );
    expect(code, stdout).toBe(99);
    const summary = here.summary();
    expect(summary.verdict).toBe("failed");
    expect(summary.reasons.join("\n")).toContain(
      "the run ended within its time limit did not hold: it took longer than 2s",
    );
    expect(stdout).toContain("the run is ended: it took longer than 2s, its limit");
    expect(stepOf(summary, "closed", "home").ok).toBeGreaterThan(0);
    expect(summary.workflows.map(({ status }) => status)).toEqual([
      "interrupted",
      "interrupted",
      "not run",
    ]);
  });
});

describe("code that never waits", () => {
  it("in set-up is aborted at its limit, and the heartbeat reports the progress", async () => {
    here.write(
      "stuck.ts",
      `${head}export default workflow("stuck", { vus: 1, iterations: 1, limits: { setup: "4s" } })
  .setup(() => { for (;;); })
  .step("home", http.get("${demo.url}"));`,
    );
    const { code, stdout, stderr } = await here.run("run", "stuck.ts", "--ui", "ci");
    expect(code, stdout).toBe(1);
    expect(stdout).toContain("setting up");
    expect(stdout).toMatch(/"stuck" is setting up for \d+ s/);
    expect(stdout + stderr).toContain("does not answer");
  });
});

describe("a set-up that Ctrl-C reaches", () => {
  it("is notified, cleans up, and is waited for", async () => {
    here.write(
      "tidy.ts",
      `${head}export default workflow("tidy", { vus: 1, duration: "1h" })
  .setup(async ({ signal, http }) => {
    console.log("setting the table");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    await http.get("${demo.url}/slow?ms=300");
    console.log("cleaned up because " + signal.reason.message);
  })
  .step("home", http.get("${demo.url}"));`,
    );
    const running = here.start(["run", "tidy.ts", "--ui", "ci", "--out", "tidy-out"]);
    await until(() => running.text().includes("setting the table"));
    running.child.kill("SIGINT");
    const { code, stdout } = await running.done;
    expect(code, stdout).toBe(130);
    expect(stdout).toContain("cleaned up because the run was stopped");
  });
});

describe("--abort-on-fail", () => {
  it("ends at the first threshold that fails, and waits for counts that may still be reached", async () => {
    const { code } = await here.run(
      ...["run", demo.url, "--duration", "1h", "--vus", "2", "--out", "abort"],
      ...["--threshold", "latency.max < 0ms", "--threshold", "requests.count > 1000000000"],
      ...["--abort-on-fail", "--ui", "none"],
    );
    expect(code).toBe(99);
    const { thresholds } = here.summary("abort");
    const aborted = thresholds.filter((one) => one.aborted).map(({ expression }) => expression);
    expect(aborted).toEqual(["latency.max < 0ms"]);
  });

  it("takes a delay before it applies, and rejects an invalid one", async () => {
    const { code } = await here.run(
      ...["run", demo.url, "--duration", "2s", "--vus", "1", "--out", "late", "--ui", "none"],
      ...["--threshold", "latency.max < 0ms", "--abort-on-fail", "1h"],
    );
    expect(code).toBe(99);
    const [threshold] = here.summary("late").thresholds;
    expect([threshold?.passed, threshold?.aborted]).toEqual([false, false]);
    const wrong = await here.run("run", demo.url, "--abort-on-fail", "soon");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--abort-on-fail")]);
  });
});

describe("abort(reason)", () => {
  it("ends the run with results and the reason", async () => {
    here.write(
      "closed.ts",
      `${head}export default workflow("shop", { rate: 100, duration: "1h" })
  .step("home", async ({ http, abort }) => {
    const answer = await http.get("${demo.url}");
    abort("the shop is closed");
    return answer;
  });`,
    );
    const { code, stdout } = await here.run("run", "closed.ts", "--ui", "ci", "--out", "closed");
    expect(code, stdout).toBe(99);
    expect(here.summary("closed").reasons.join("\n")).toContain("the shop is closed");
    expect(stepOf(here.summary("closed"), "shop", "home").ok).toBeGreaterThan(0);
  });
});
