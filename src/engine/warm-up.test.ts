/** Counting of iterations around the end of the warm-up. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { flow } from "../workflow/flow.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

/** No call ends before the warm-up does: everything begun in it goes on in the measured time. */
const load = { vus: 3, warmup: "200ms", duration: "1200ms" } as const;
const slow = "/slow?ms=300";

function only<Item>(items: readonly Item[]): Item {
  const [item] = items;
  if (item === undefined) throw new Error("there is one");
  return item;
}

describe("checks of a call that was due in the warm-up", () => {
  it("are ignored like the call in flows", async () => {
    const run = await InProcessRun.whole(
      flow("w", load, async ({ check, step }) => {
        const answer = await step("slow", http.get(`${demo.url}${slow}`));
        check("fine", () => answer.ok);
      }),
    );
    const { checks, steps } = run.workflow("w").data();
    const [check, { totals }] = [only(checks), only(steps)];
    expect(totals.requests).toBeGreaterThan(0);
    expect([check.passed, check.failed]).toEqual([totals.requests, 0]);
    expect(check.warmup).toBe(3);
  });

  it("count like the call in layers, and metrics of the workflow like iterations", async () => {
    const run = await InProcessRun.whole(
      workflow("w", load)
        .step("slow", http.get(`${demo.url}${slow}`))
        .check("fine", { after: ["slow"] }, ({ results }) => results.slow.ok)
        .metric("iterations_seen", "counter", () => 1),
    );
    const { checks, iterations, metrics, steps } = run.workflow("w").data();
    const { passed, warmup } = only(checks);
    expect([passed, warmup]).toEqual([only(steps).totals.requests, 3]);
    expect(only(metrics.list()).count).toBe(iterations);
  });

  it("of an iteration that goes on count from its first call in the measured time on", async () => {
    const run = await InProcessRun.whole(
      flow("w", { ...load, vus: 1 }, async ({ check, step }) => {
        for (let at = 0; at < 3; at++) {
          const answer = await step("slow", http.get(`${demo.url}/slow?ms=150`));
          check("fine", () => answer.ok);
        }
      }),
    );
    const { checks, steps } = run.workflow("w").data();
    expect(only(checks).passed).toBe(only(steps).totals.requests);
  });
});

describe("iterations of the warm-up", () => {
  it("that end early, or throw, add no note and break no rule", async () => {
    const ended = await InProcessRun.whole(
      flow("w", load, async ({ end, step }) => {
        await step("slow", http.get(`${demo.url}${slow}`));
        end("enough");
      }),
    );
    const count = ended.workflow("w").outcome("ended");
    expect(count).toBeGreaterThan(0);
    expect(ended.notes.join()).toContain(`${count} iterations ended early, by: enough (${count})`);

    const threw = await InProcessRun.whole(
      flow("w", load, async ({ step, user }) => {
        await step("slow", http.get(`${demo.url}${slow}`));
        if (user.iteration === 0) throw new Error("cold");
      }),
    );
    expect(threw.logs.join()).toContain("cold");
    expect(threw.summary().thresholds.filter(({ passed }) => !passed)).toEqual([]);
  });

  it("are noted when a check ran in no others", async () => {
    const run = await InProcessRun.whole(
      flow("w", load, async ({ check, step, user }) => {
        await step("slow", http.get(`${demo.url}${slow}`));
        if (user.iteration === 0) check("cold start", () => false);
      }),
    );
    const { checks } = only(run.summary().workflows);
    expect(checks).toEqual([{ name: "cold start", passed: 0, failed: 0, warmup: 3 }]);
  });
});
