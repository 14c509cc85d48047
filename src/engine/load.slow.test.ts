/** Load models in real time, kept short: the tests assert counts and order, never speed. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findMetric } from "../core/load/stats/metrics.ts";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun, until } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { counter } from "../workflow/metrics.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A workflow whose step waits this long and counts the users in it at once. */
function counting(options: WorkflowOptions, waitMs: number) {
  const seen = { now: 0, most: 0, begun: 0 };
  const flow = workflow("w", options).step("s", async () => {
    seen.begun++;
    seen.most = Math.max(seen.most, ++seen.now);
    await pause(waitMs);
    seen.now--;
    return measure(() => 1);
  });
  return { flow, seen };
}

describe("closed models", () => {
  it("keep exactly that many users busy for the duration", async () => {
    const { flow, seen } = counting({ vus: 7, duration: "1s" }, 10);
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(seen.most).toBe(7);
    const { interrupted, ok, requests } = run.step("w", "s");
    expect([requests, interrupted]).toEqual([seen.begun, 0]);
    expect(ok).toBe(run.workflow("w").iterations);
    expect(run.workflow("w").elapsedMs).toBeGreaterThan(290);
  });

  it("count what the server counted, and send nothing after the end", async () => {
    const before = demo.stats().requests;
    const flow = workflow("w", { vus: 10, duration: "300ms" }).step("home", http.get(demo.url));
    const run = await InProcessRun.whole(flow, { cores: 2 });
    const { failed, ok } = run.step("w", "home");
    expect(failed).toBe(0);
    expect(demo.stats().requests - before).toBe(ok);
    await pause(50);
    expect(demo.stats().requests - before).toBe(ok);
  });

  it("follow stages up and down, and reuse the numbers of finished users", async () => {
    const ids = new Set<number>();
    const { flow, seen } = counting(
      {
        startVus: 1,
        stages: [
          { duration: "150ms", vus: 10 },
          { duration: "150ms", vus: 0 },
          { duration: "150ms", vus: 10 },
          { duration: "1s", vus: 10 },
        ],
      },
      5,
    );
    flow.check("id", ({ user }) => ids.add(user.id).size > 0);
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(seen.most).toBe(10);
    expect([...ids].every((id) => id < 10)).toBe(true);
    expect(run.step("w", "s").requests).toBe(seen.begun);
  });

  it("keep think time between iterations, and pace their starts", async () => {
    const begun: number[] = [];
    const at = (options: WorkflowOptions) =>
      workflow("w", options).step("s", async () => {
        begun.push(performance.now());
        await pause(5);
        return measure(() => 1);
      });
    await InProcessRun.whole(at({ vus: 1, iterations: 4, think: "40ms" }));
    const gaps = begun.slice(1).map((time, i) => time - (begun[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(42);
    begun.length = 0;
    await InProcessRun.whole(at({ vus: 1, iterations: 4, pacing: "40ms" }));
    for (const [i, time] of begun.entries()) {
      if (i > 0) expect(time - (begun[i - 1] ?? 0)).toBeGreaterThan(38);
    }
  });

  it("retire users in think time when the ramp goes down", async () => {
    let iterations = 0;
    const flow = workflow("w", {
      startVus: 5,
      stages: [
        { duration: "800ms", vus: 5 },
        { duration: "1ms", vus: 0 },
        { duration: "1500ms", vus: 0 },
      ],
      think: "1500ms",
    }).step("s", () => {
      iterations++;
      return measure(() => 1);
    });
    await InProcessRun.whole(flow);
    expect(iterations).toBe(5);
  });
});

describe("open models", () => {
  it("begin as many iterations as the rate asks for, over all cores", async () => {
    const { flow, seen } = counting({ rate: 200, duration: "500ms" }, 1);
    const run = await InProcessRun.whole(flow, { cores: 2 });
    const { arrivals } = run.workflow("w").data();
    expect((arrivals?.started ?? 0) + (arrivals?.missed ?? 0)).toBe(100);
    expect(seen.begun).toBe(arrivals?.started);
    expect(seen.begun).toBeGreaterThan(0);
  });

  it("never exceed their bound of users, and measure the resulting wait", async () => {
    const { flow, seen } = counting({ rate: 100, duration: "500ms", maxVus: 2 }, 50);
    const run = await InProcessRun.whole(flow);
    expect(seen.most).toBe(2);
    const { arrivals } = run.workflow("w").data();
    expect((arrivals?.started ?? 0) + (arrivals?.missed ?? 0)).toBe(50);
    expect(arrivals?.missed).toBeGreaterThan(20);
    const { totals } = run.step("w", "s");
    // Two users do 40 per second: the last to be served was due long before.
    expect(totals.latency.max).toBeGreaterThan(200_000);
    expect(totals.service.max).toBeLessThan(totals.latency.max);
  });

  it("follow a ramp of the rate", async () => {
    const { flow, seen } = counting({ rateStages: [{ duration: "500ms", rate: 400 }] }, 1);
    const run = await InProcessRun.whole(flow);
    const missed = run.workflow("w").data().arrivals?.missed ?? 0;
    expect(seen.begun + missed).toBe(100);
  });
});

describe("iterations", () => {
  it("shared by the users run exactly that many times, over all cores", async () => {
    const users = new Set<number>();
    const flow = workflow("w", { vus: 9, iterations: 100 }).step("s", async ({ user }) => {
      users.add(user.id);
      await pause(1);
      return measure(() => 1);
    });
    const run = await InProcessRun.whole(flow, { cores: 3 });
    expect(run.step("w", "s").ok).toBe(100);
    expect(run.workflow("w").iterations).toBe(100);
    expect(users.size).toBe(9);
    expect(run.ended).toEqual([["w", "completed", null]]);
  });

  it("per user run for each user", async () => {
    const done = new Map<number, number>();
    const flow = workflow("w", { vus: 5, iterationsPerVu: 4 }).step("s", ({ user }) => {
      done.set(user.id, (done.get(user.id) ?? 0) + 1);
      return measure(() => 1);
    });
    await InProcessRun.whole(flow, { cores: 2 });
    expect([...done.values()]).toEqual([4, 4, 4, 4, 4]);
  });

  it("end at their time limit", async () => {
    const { flow } = counting({ vus: 2, iterations: 1_000, maxDuration: "150ms" }, 20);
    const run = await InProcessRun.whole(flow);
    expect(run.step("w", "s").ok).toBeGreaterThan(0);
    expect(run.step("w", "s").ok).toBeLessThan(100);
  });
});

describe("warm-up", () => {
  it("is left out of all counts", async () => {
    const tally = counter("load_test_tally");
    let all = 0;
    let late = 0;
    let began: number | undefined;
    const flow = workflow("w", { vus: 2, duration: "500ms", warmup: "1s" })
      .step("s", async () => {
        all++;
        // From the first of them: on a busy machine the run begins long after this test.
        began ??= performance.now();
        if (performance.now() - began > 500) late++;
        tally.add(1);
        await pause(10);
        return measure(() => 1);
      })
      .check("c", () => true);
    const before = performance.now();
    const run = await InProcessRun.whole(flow);
    const wholeMs = performance.now() - before;
    const { ok } = run.step("w", "s");
    const { checks, metrics } = run.workflow("w").data();
    expect(ok).toBeLessThan(late);
    expect(ok).toBeGreaterThan(0);
    expect(all).toBeGreaterThan(late);
    expect(run.workflow("w").iterations).toBe(ok);
    expect(checks).toEqual([{ name: "c", passed: ok, failed: 0, warmup: expect.any(Number) }]);
    const counted = findMetric([metrics], "load_test_tally")?.count;
    expect(counted).toBeGreaterThanOrEqual(ok);
    expect(counted).toBeLessThan(all);
    // However long a busy machine took: the second of the warm-up is left out.
    expect(run.workflow("w").elapsedMs).toBeLessThan(wholeMs - 999);
  });
});

describe("manual control", () => {
  it("pauses everything, and resumes where it was", async () => {
    const { flow, seen } = counting({ vus: 3, duration: "1s" }, 5);
    const before = performance.now();
    const run = await InProcessRun.start(flow);
    await until(() => seen.begun > 5);
    run.pause();
    await until(() => seen.now === 0);
    await pause(30);
    const held = seen.begun;
    const heldSince = performance.now();
    await pause(1_500);
    expect(seen.begun).toBe(held);
    expect(run.ended).toEqual([]);
    const heldMs = performance.now() - heldSince;
    run.resume();
    await run.done;
    expect(seen.begun).toBeGreaterThan(held);
    // However long a busy machine took: the pause is left out.
    expect(run.workflow("w").elapsedMs).toBeLessThan(performance.now() - before - heldMs);
  });

  it("scales users up and down again", async () => {
    const { flow, seen } = counting({ vus: 4, duration: "5m" }, 5);
    const run = await InProcessRun.start(flow, { cores: 2 });
    await until(() => seen.most === 4);
    run.scale(2);
    await until(() => seen.most === 8);
    run.scale(1);
    // Users leave between iterations: poll until a whole interval has seen four at once and no more.
    do {
      seen.most = 0;
      await pause(200);
    } while (seen.most !== 4);
    run.stop();
    await run.done;
    expect(run.ended).toEqual([["w", "interrupted", null]]);
  });

  it("scales a rate", async () => {
    const { flow, seen } = counting({ rate: 50, duration: "5m" }, 1);
    const run = await InProcessRun.start(flow);
    await until(() => seen.begun > 3);
    run.scale(4);
    const before = seen.begun;
    // At the old rate this would be 50.
    await pause(1_000);
    expect(seen.begun - before).toBeGreaterThan(100);
    run.stop();
    await run.done;
    const [scaled] = run.summary().workflows;
    const { missed, started, targetPerSecond } = scaled?.arrivals ?? {
      missed: 0,
      started: 0,
      targetPerSecond: 0,
    };
    expect(targetPerSecond * (scaled?.elapsedSeconds ?? 0)).toBeCloseTo(started + missed, 0);
  });

  it("ignores a scale of a fixed number of iterations, and says so", async () => {
    const { flow, seen } = counting({ vus: 2, iterations: 30 }, 10);
    const run = await InProcessRun.start(flow);
    await until(() => seen.begun > 3);
    run.scale(3);
    await run.done;
    const { events = [], notes } = run.summary();
    expect(events.filter(({ kind }) => kind === "scale").map(({ text }) => text)).toEqual([
      "the load stays as it is: a fixed number of iterations cannot be scaled",
    ]);
    expect(notes.join()).not.toContain("changed by hand");
  });
});

describe("the end", () => {
  it("lets work in flight finish and counts it", async () => {
    const { flow, seen } = counting({ vus: 5, duration: "100ms" }, 300);
    const run = await InProcessRun.whole(flow);
    expect(seen.begun).toBe(5);
    expect(run.step("w", "s")).toMatchObject({ ok: 5, interrupted: 0 });
  });

  it("cuts off what does not finish in time, and counts it as unanswered", async () => {
    const before = demo.stats().requests;
    const options = { vus: 4, duration: "1500ms", gracefulStop: "100ms" } as const;
    const flow = workflow("w", options)
      .step("hang", http.get(`${demo.url}/slow?ms=200000`))
      .step("function", ({ http }) => http.get(`${demo.url}/slow?ms=200000`));
    const run = await InProcessRun.whole(flow);
    for (const step of ["hang", "function"])
      expect(run.step("w", step)).toMatchObject({ requests: 4, errors: { unanswered: 4 } });
    expect(run.workflow("w").interruptedIterations).toBe(4);
    expect(demo.stats().requests - before).toBe(8);
  });

  it("begins no later step once the time is over (VU-6)", async () => {
    let second = 0;
    const flow = workflow("w", { vus: 3, duration: "100ms" })
      .step("first", async () => {
        await pause(200);
        return measure(() => 1);
      })
      .step("second", { after: ["first"] }, () => {
        second++;
        return measure(() => 1);
      });
    const run = await InProcessRun.whole(flow);
    expect([run.step("w", "first").ok, second]).toEqual([3, 0]);
    expect(run.workflow("w").interruptedIterations).toBe(3);
  });

  it("leaves no timer behind when no user was under way", async () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
    const before = timers();
    const options = { vus: 2, duration: "200ms", think: "1h", gracefulStop: "1h" } as const;
    await InProcessRun.whole(counting(options, 1).flow);
    await until(() => timers() <= before);
  });

  it("is announced through the signal before anything is cut off", async () => {
    const reasons: unknown[] = [];
    const options = { vus: 2, duration: "50ms", gracefulStop: "50ms" } as const;
    const flow = workflow("w", options).step("s", async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason);
      return measure(() => 1);
    });
    await InProcessRun.whole(flow);
    expect(String(reasons[0])).toMatch(/the graceful stop has 10ms left of its 50ms/);
  });
});
