/** Workflows of one layer run at the same time, whatever the number of cores, and some begin later. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { measure } from "../workflow/custom-result.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const one = () => measure(() => 1);

/** Workflows whose first step waits until every one of them has begun. */
function meeting(options: Readonly<Record<string, WorkflowOptions>>) {
  const names = Object.keys(options);
  const begun = new Set<string>();
  const flows = Object.entries(options).map(([name, own]) =>
    workflow(name, own)
      .action("meet", async () => {
        begun.add(name);
        await until(() => begun.size === names.length);
      })
      .step("home", { after: ["meet"] }, http.get(demo.url)),
  );
  return { flows, begun };
}

describe("on one core", () => {
  it("runs closed, open and counted workflows at once, and counts them apart", async () => {
    const { flows, begun } = meeting({
      closed: { vus: 2, duration: "400ms" },
      open: {
        rate: 50,
        duration: "400ms",
        warmup: "100ms",
        thresholds: ["arrivals.missed.rate <= 100%"],
      },
      counted: { vus: 1, iterations: 5 },
    });
    const before = demo.stats().requests;
    const run = await InProcessRun.whole(flows, { cores: 1 });
    expect(begun.size).toBe(3);
    expect(run.ended.map(([, status]) => status)).toEqual(Array(3).fill("completed"));
    const summary = run.summary();
    expect(summary.reasons).toEqual([]);
    expect(new Set(summary.workflows.map(({ cores }) => cores))).toEqual(new Set([1]));
    expect(run.step("counted", "home").ok).toBe(5);
    const { missed = 0, started = 0 } = run.workflow("open").data().arrivals ?? {};
    expect(started + missed).toBe(20);
    // The server also answered the 5 arrivals of the warm-up.
    const counted = ["closed", "open", "counted"].map((name) => run.step(name, "home").requests);
    const sent = counted.reduce((all, n) => all + n, 0);
    expect(demo.stats().requests - before).toBe(sent + 5);
  });

  it("ends all of them on an aborting threshold of one, and on a stop", async () => {
    const never = { threshold: "latency.max < 0ms", abortOnFail: true };
    const first = meeting({
      a: { vus: 1, duration: "1h", thresholds: [never] },
      b: { rate: 20, duration: "1h" },
    });
    const aborted = await InProcessRun.whole(first.flows, { cores: 1 });
    expect(aborted.ended.map(([, status]) => status)).toEqual(["interrupted", "interrupted"]);
    const second = meeting({ a: { vus: 1, duration: "1h" }, b: { vus: 1, iterations: 1e9 } });
    const run = await InProcessRun.start(second.flows, { cores: 1 });
    await until(() => second.begun.size === 2);
    run.stop();
    await run.done;
    expect(run.ended.map(([, status]) => status)).toEqual(["interrupted", "interrupted"]);
  });

  it("runs an exclusive workflow alone all the same", async () => {
    const log: string[] = [];
    const noted = (name: string, priority: "exclusive" | "auto") =>
      workflow(name, { vus: 1, iterations: 3, priority }).step("s", async () => {
        log.push(name);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return one();
      });
    await InProcessRun.whole([noted("a", "auto"), noted("x", "exclusive")], { cores: 1 });
    expect(log).toEqual(["x", "x", "x", "a", "a", "a"]);
  });
});

describe("startAfter", () => {
  it("delays a workflow in its layer, also behind others, and its own time begins then", async () => {
    const first = workflow("first", { vus: 1, duration: "300ms" }).step("s", async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return one();
    });
    const late = workflow("late", { vus: 1, iterations: 1, startAfter: "200ms" }).step("s", one);
    const behind = workflow("behind", {
      rate: 50,
      duration: "200ms",
      startAfter: "100ms",
      warmup: "100ms",
      thresholds: ["requests.rate over 100ms > 1/s"],
    })
      .dependsOn(first)
      .step("s", one);
    const before = performance.now();
    const run = await InProcessRun.whole([first, late, behind]);
    const began = (name: string) => run.workflow(name).startedAtMs - before;
    expect(began("late")).toBeGreaterThan(199);
    expect(began("behind") - began("first")).toBeGreaterThan(399);
    expect(run.summary().workflows[1]?.load).toBe(
      "1 iteration shared by 1 virtual user, at most 1h, beginning after 200ms",
    );
    expect(run.summary().reasons).toEqual([]);
  });

  it("waits during a pause, and applies a changed load to workflows that begin later", async () => {
    let steps = 0;
    const first = workflow("first", { vus: 1, duration: "1s" }).step("s", one);
    const late = workflow("late", { vus: 2, duration: "2s", startAfter: "300ms" }).step(
      "s",
      async ({ sleep }) => {
        steps++;
        await sleep(5);
        return one();
      },
    );
    const run = await InProcessRun.start([first, late], { cores: 1 });
    await until(() => run.workflow("first").iterations > 0);
    run.pause();
    run.scale(2);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(steps).toBe(0);
    expect(run.workflow("late").status).toBe("waiting");
    run.resume();
    await until(() => run.workflow("late").target === 4);
    await run.done;
    expect(run.ended.map(([, status]) => status)).toEqual(["completed", "completed"]);
  });

  it("tears down a workflow that was set up when a paused run is stopped", async () => {
    const log: string[] = [];
    let finishSetup = (): void => {};
    const first = workflow("first", { vus: 1, duration: "1h" }).step("s", one);
    const held = workflow("held", { vus: 1, duration: "1h" })
      .setup(async () => {
        await new Promise<void>((resolve) => {
          finishSetup = resolve;
          log.push("setting up");
        });
        log.push("set up");
      })
      .step("s", () => {
        log.push("step");
        return one();
      })
      .teardown(() => log.push("torn down"));
    const run = await InProcessRun.start([first, held], { cores: 1 });
    await until(() => log.length === 1 && run.workflow("first").iterations > 0);
    run.pause();
    finishSetup();
    await until(() =>
      run.events.some(({ core, event }) => core === 1 && event.kind === "setupDone"),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    run.stop();
    await run.done;
    expect(log).toEqual(["setting up", "set up", "torn down"]);
  });
});
