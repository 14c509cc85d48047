/**
 * Due times of calls in an open model. A target that blocks all users must show in the latency whatever the user does
 * before the first call; a pause declared by the author must not.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Lateness of a step's calls beyond their own duration, in milliseconds. */
function latenessMs(run: InProcessRun, name: string) {
  const { latency, service } = run.step("w", name).totals;
  return { mean: (latency.mean - service.mean) / 1_000, max: latency.max / 1_000 };
}

describe("in an open model", () => {
  it("counts userSetup as lateness of the iteration that had to wait for it", async () => {
    const flow = workflow("w", { rate: 20, duration: "1s", maxVus: 20 })
      .userSetup(() => wait(300))
      .step("s", http.get(demo.url));
    const run = await InProcessRun.whole(flow);
    const { iterations, interruptedIterations } = run.workflow("w");
    // Users whose setup ends with the plan never begin: each arrival still has an outcome.
    expect(iterations + interruptedIterations).toBe(run.workflow("w").data().arrivals?.started);
    expect(iterations).toBe(run.step("w", "s").requests);
    // The first arrivals come before any user is set up; some are served by users that are.
    const { latency } = run.step("w", "s").totals;
    expect(latency.quantile(0.75) / 1_000).toBeGreaterThan(290);
    expect(latenessMs(run, "s").max).toBeGreaterThan(290);
  });

  it("measures lateness behind an action before the first step", async () => {
    const flow = workflow("w", { rate: 50, duration: "1s", maxVus: 2, gracefulStop: "5s" })
      .action("first", () => wait(1))
      .step("s", { after: ["first"] }, http.get(`${demo.url}/slow?ms=100`));
    const run = await InProcessRun.whole(flow);
    const arrivals = run.workflow("w").data().arrivals;
    // The plan may end between the action and the step.
    const { interruptedIterations } = run.workflow("w");
    expect(arrivals?.started).toBe(run.step("w", "s").requests + interruptedIterations);
    // The time an arrival waited for a user is a lower bound for the lateness of its call. One without a call waited
    // longest.
    const waitedMs = (arrivals?.lag.mean ?? 0) / 1_000;
    expect(waitedMs).toBeGreaterThan(200);
    if (interruptedIterations === 0)
      expect(latenessMs(run, "s").mean).toBeGreaterThan(waitedMs * 0.999);
  });

  it("moves the due time of the first call by a pause, wherever it is made", async () => {
    const flow = workflow("w", { rate: 4, duration: "3s", maxVus: 20 })
      .userSetup(({ sleep }) => sleep(400))
      .action("pause", ({ sleep }) => sleep(400))
      .step("s", { after: ["pause"] }, async ({ http, sleep }) => {
        await sleep(400);
        return http.get(demo.url);
      });
    const run = await InProcessRun.whole(flow);
    const { requests, totals } = run.step("w", "s");
    expect(requests).toBeGreaterThan(0);
    // One pause counted as lateness would be 400 ms for every call.
    expect(totals.latency.min / 1_000).toBeLessThan(400);
  });

  it("counts code before the first call as lateness; later calls are due when reached", async () => {
    const flow = workflow("w", { rate: 10, duration: "500ms", maxVus: 10 })
      .step("a", async ({ http }) => {
        await wait(300);
        return http.get(demo.url);
      })
      .step("b", { after: ["a"] }, async ({ http }) => {
        await wait(300);
        return http.get(demo.url);
      })
      .step("c", { after: ["b"] }, () => measure(() => 1));
    const run = await InProcessRun.whole(flow);
    expect(latenessMs(run, "a").mean).toBeGreaterThan(290);
    for (const later of ["b", "c"]) expect(latenessMs(run, later).mean).toBeCloseTo(0, 2);
  });
});
