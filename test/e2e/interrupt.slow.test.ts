/** Ctrl-C and a killed executor: partial results are kept, and report what happened. */

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

/** Waits until the run has been under load for a while and has printed its first metrics. */
async function underLoad(requests: number): Promise<void> {
  const before = demo.stats().requests;
  await until(() => demo.stats().requests > before + requests);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
}

it("a closed terminal (SIGHUP, sent twice) keeps the results like any other end", async () => {
  const run = here.start(["run", demo.url, "--vus", "2", "--duration", "10m", "--out", "hung-up"]);
  await underLoad(50);
  run.child.kill("SIGHUP");
  run.child.kill("SIGHUP");
  expect((await run.done).code).toBe(130);
  expect(here.files("hung-up")).toEqual(["junit.xml", "report.html", "summary.json"]);
});

/** Presses Ctrl-C just when the first core has reported its workflows. */
const PRESS_WHEN_LOADED = `
import { ChildProcess } from "node:child_process";
if (process.send === undefined) {
  const { emit } = ChildProcess.prototype;
  let pressed = false;
  ChildProcess.prototype.emit = function (event, ...rest) {
    const heard = emit.call(this, event, ...rest);
    if (!pressed && event === "message" && JSON.stringify(rest[0] ?? null).includes("manifests")) {
      pressed = true;
      setImmediate(() => process.kill(process.pid, "SIGINT"));
    }
    return heard;
  };
}`;

describe("Ctrl-C", () => {
  it("between the loading of a file and its first call ends it, too", async () => {
    const before = demo.stats().requests;
    here.write("press.mjs", PRESS_WHEN_LOADED);
    const { code, stderr } = await here.start(
      ["run", demo.url, "--vus", "1", "--duration", "3s", "--ui", "none"],
      { NODE_OPTIONS: `--import=file://${here.path}/press.mjs` },
    ).done;
    expect([code, stderr]).toEqual([130, expect.stringContaining("interrupted before")]);
    expect(demo.stats().requests).toBe(before);
  });

  it("waits for work in flight no longer than the graceful stop", async () => {
    const url = `${demo.url}/slow?ms=200000`;
    const args = ["--vus", "5", "--duration", "10m", "--graceful-stop", "300ms"];
    const run = here.start(["run", url, ...args, "--ui", "none", "--out", "cut"]);
    await underLoad(4);
    run.child.kill("SIGINT");
    expect((await run.done).code).toBe(130);
    // Had it waited, the answers would have come and been counted.
    const [step] = here.summary("cut").workflows[0]?.steps ?? [];
    expect(step).toMatchObject({ ok: 0, errors: { unanswered: 5 } });
  });

  it("given twice does not wait, and the result reports possibly missing metrics", async () => {
    const args = ["--vus", "2", "--duration", "10m", "--graceful-stop", "5m"];
    const run = here.start(["run", `${demo.url}/slow?ms=200000`, ...args, "--out", "twice"]);
    await underLoad(1);
    run.child.kill("SIGINT");
    // Two signals to a process that has not had its turn are one.
    await until(() => run.text().includes("again to stop at once"));
    run.child.kill("SIGINT");
    expect((await run.done).code).toBe(130);
    const { notes, workflows } = here.summary("twice");
    expect(workflows[0]?.status).toBe("interrupted");
    expect(notes.join()).toContain(
      "what 2 virtual users had under way, are missing from the results",
    );
  });

  it("stops a workflow whose code never yields", async () => {
    here.write(
      "stuck.mjs",
      `import { measure, workflow } from "hyperscalejs";
export default workflow("stuck", { vus: 1, duration: "10m", gracefulStop: "200ms" })
  .step("spin", async ({ http }) => { await http.get("${demo.url}"); for (;;); });
`,
    );
    const run = here.start(["run", "stuck.mjs", "--ui", "ci", "--out", "stuck", "--cores", "1"]);
    await underLoad(0);
    run.child.kill("SIGINT");
    const { code, stdout } = await run.done;
    expect(code).toBe(130);
    expect(stdout).toMatch(/executor core 0 does not answer/);
    expect(here.summary("stuck")).toMatchObject({ verdict: "interrupted", lost: [{ core: 0 }] });
  });
});

describe("kill -9 of an executor core", () => {
  it("costs its users; the run continues, keeps its counts, and reports the loss", async () => {
    const before = demo.stats().requests;
    const args = ["--vus", "8", "--duration", "8s", "--cores", "2", "--ui", "ci", "--out", "lost"];
    const run = here.start(["run", demo.url, ...args]);
    await underLoad(300);
    const [victim] = childrenOf(run);
    process.kill(victim, "SIGKILL");
    const { code, stdout } = await run.done;
    const served = demo.stats().requests - before;
    const summary = here.summary("lost");
    expect(summary.lost).toHaveLength(1);
    expect(summary.lost[0]?.what).toMatch(/executor core \d \(pid \d+\) ended with SIGKILL/);
    expect(summary.lost[0]?.cost).toMatch(/1 of 2 cores .* its virtual users are gone/);
    expect(stdout).toMatch(/ended with SIGKILL/);
    expect(summary.generator.cores.filter((core) => !core.alive)).toHaveLength(1);
    const requests = summary.workflows[0]?.steps[0]?.requests ?? 0;
    expect(requests).toBeGreaterThan(100);
    expect(requests).toBeLessThanOrEqual(served);
    expect(summary.workflows[0]?.status).toBe("completed");
    expect(code).toBe(0);
  });

  it("that was the last ends the run with an error, and what was counted is written", async () => {
    const args = [
      "--vus",
      "4",
      "--duration",
      "10m",
      "--cores",
      "1",
      "--ui",
      "ci",
      "--out",
      "all-lost",
    ];
    const run = here.start(["run", demo.url, ...args]);
    await underLoad(300);
    process.kill(childrenOf(run)[0], "SIGKILL");
    const { code } = await run.done;
    expect(code).toBe(1);
    const summary = here.summary("all-lost");
    expect(summary).toMatchObject({ verdict: "failed", lost: [{ core: 0 }] });
    expect(summary.workflows[0]?.status).toBe("failed");
    expect(summary.workflows[0]?.steps[0]?.requests).toBeGreaterThan(50);
  });
});
