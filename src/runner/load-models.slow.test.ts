/** The breakpoint search, the throttle and random arrivals in whole runs, against a server that counts. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { stairs } from "../core/load/plan/stairs.ts";
import { http } from "../protocols/http1/index.ts";
import { measure } from "../workflow/custom-result.ts";
import { flow } from "../workflow/flow.ts";
import { mix } from "../workflow/mix.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Answers 503 beyond this many requests in each second: its limit does not depend on its speed. */
async function limited(perSecond: number): Promise<string> {
  let [since, count] = [0, 0];
  server = createServer((_, response) => {
    const now = performance.now();
    if (now - since >= 1_000) [since, count] = [now, 0];
    response.statusCode = ++count > perSecond ? 503 : 200;
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const probing = { settle: "100ms", hold: "1s", precision: 0.3 } as const;

describe("a search for the breakpoint", () => {
  it("finds between which rates a server begins to reject, on two cores, after a warm-up", async () => {
    const url = await limited(45);
    const flow = workflow("capacity", {
      breakpoint: { rate: { from: 10, to: 640 }, ...probing },
      warmup: "200ms",
      thresholds: ["errors.rate < 1%"],
    })
      .step("home", http.get(url))
      .check("answered", ({ results }) => results.home.status > 0);
    const beside = workflow("beside", { vus: 1, duration: "300ms" }).step(
      "s",
      async ({ sleep }) => {
        await sleep(10);
        return measure(() => 1);
      },
    );
    const run = await InProcessRun.whole([flow, beside], { cores: 2 });
    const summary = run.summary();
    const found = summary.workflows[0]?.breakpoint;
    expect(found?.probes.map(({ load }) => load).slice(0, 2)).toEqual([10, 20]);
    // Seconds of the server and of the probes are not aligned, and a busy machine makes arrivals pile up.
    expect(found?.held).toBeGreaterThanOrEqual(10);
    expect(found?.broke).toBeLessThanOrEqual(160);
    expect(found?.decided).toBe(true);
    expect(found?.text).toMatch(/held, .* broke \(errors\.rate < 1%: [\d.]+ %\)/);
    expect(summary.reasons).toEqual([]);
    expect(summary.workflows.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(summary.thresholds[0]?.actualText).toContain(`at ${found?.held}`);
    // The requested arrivals are those of the loads that were made.
    const { missed = 0, started = 0, targetPerSecond = 0 } = summary.workflows[0]?.arrivals ?? {};
    const asked = targetPerSecond * (summary.workflows[0]?.elapsedSeconds ?? 0);
    expect(Math.abs(started + missed - asked)).toBeLessThan(0.1 * asked + 20);
  });

  it("waits until the calls of a load that broke have ended before it tries the next one", async () => {
    const inFlight: number[] = [];
    let [queued, freeAt] = [0, 0];
    const one = flow(
      "queue",
      {
        breakpoint: { rate: { from: 20, to: 160 }, settle: 0, hold: "600ms", precision: 0.3 },
        thresholds: ["errors.rate < 1%"],
      },
      async ({ step }) => {
        // One call after the other, 20 ms each: 50/s, and faster ones queue.
        const now = performance.now();
        inFlight.push(queued++);
        const isLong = queued > 12;
        freeAt = Math.max(now, freeAt) + 20;
        await step("call", async () => {
          await delay(freeAt - now);
          if (isLong) throw new Error("the queue is long");
          return measure(() => 1);
        });
        queued--;
      },
    );
    const run = await InProcessRun.whole(one);
    const { arrivals, breakpoint } = run.summary().workflows[0] ?? {};
    const broken = breakpoint?.probes.filter(({ held }) => !held) ?? [];
    expect(broken.length).toBeGreaterThan(0);
    expect(breakpoint?.probes.length).toBeGreaterThan(broken.length);
    const peak = inFlight.indexOf(Math.max(...inFlight));
    expect(inFlight.slice(peak)).toContain(0);
    expect(arrivals?.missed).toBe(0);
    expect(run.logs.filter((line) => line.startsWith("breakpoint: "))).toHaveLength(
      breakpoint?.probes.length ?? 0,
    );
  });

  it("works in users; reaching the highest load is an answer, too", async () => {
    const flow = workflow("users", {
      breakpoint: { vus: { from: 1, to: 4 }, settle: 0, hold: "200ms" },
      thresholds: ["errors.rate < 1%"],
    }).step("s", async ({ sleep }) => {
      await sleep(5);
      return measure(() => 1);
    });
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(run.summary().workflows[0]?.breakpoint).toMatchObject({
      of: "vus",
      held: 4,
      broke: null,
      text: "4 virtual users held, the highest that was to be tried; nothing broke",
    });
    expect(run.summary().verdict).toBe("passed");
  });

  it("fails when even the first load breaks, and says why", async () => {
    const url = await limited(0);
    const flow = workflow("none", {
      breakpoint: { rate: { from: 20, to: 100 }, settle: 0, hold: "300ms" },
      thresholds: ["errors.rate < 1%"],
    })
      .step("home", http.get(url, { expect: [200, 503] }))
      .step("real", http.get(url));
    const run = await InProcessRun.whole(flow);
    const summary = run.summary();
    expect(summary.verdict).toBe("failed");
    expect(summary.workflows[0]?.breakpoint?.text).toMatch(/^even 20\/s broke \(errors\.rate/);
  });

  it("breaks when a check of a flow fails, and shows red only what did not hold", async () => {
    const url = await limited(Number.POSITIVE_INFINITY);
    const options = {
      breakpoint: { vus: { from: 1, to: 4 }, settle: 0, hold: "200ms" },
      thresholds: ["errors.rate < 1%"],
    } as const;
    const run = await InProcessRun.whole(
      flow("checked", options, async ({ check, step }) => {
        await step("home", http.get(url));
        check("never", () => false);
      }),
    );
    const { thresholds, verdict, workflows } = run.summary();
    expect(verdict).toBe("failed");
    expect(workflows[0]?.breakpoint?.text).toMatch(/^even 1 .* broke \(checks\.rate/);
    expect(
      thresholds.map(({ expression, implicit, passed }) => [expression, implicit, passed]),
    ).toMatchObject([
      ["errors.rate < 1%", false, true],
      ["checks.rate >= 100%", true, false],
      ["every step succeeded at least once", true, true],
    ]);
  });

  it("counts a load that was not reached as broken", async () => {
    const flow = workflow("few", {
      breakpoint: { rate: { from: 10, to: 400 }, settle: "100ms", hold: "500ms", precision: 1 },
      maxVus: 2,
      thresholds: ["errors.rate < 1%"],
    }).step("s", async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return measure(() => 1);
    });
    const run = await InProcessRun.whole(flow);
    const found = run.summary().workflows[0]?.breakpoint;
    expect(found?.probes.at(-1)?.reason).toMatch(/\d+ arrivals waited for a free user/);
    expect(found?.held).toBeLessThanOrEqual(40);
  });

  it("reports what it knows when stopped or cut off, and excludes a pause from probes", async () => {
    const options: WorkflowOptions = {
      breakpoint: { rate: { from: 50, to: 50_000 }, settle: 0, hold: "200ms" },
      thresholds: ["errors.rate < 1%"],
    };
    const flow = workflow("long", options).step("s", () => measure(() => 1));
    const run = await InProcessRun.start(flow);
    const probes = () => run.summary().workflows[0]?.breakpoint?.probes ?? [];
    await until(() => probes().length > 0);
    run.pause();
    await until(() => run.events.filter(({ event }) => event.kind === "frame").length > 20);
    const before = probes().length;
    run.resume();
    await until(() => probes().length > before);
    run.stop();
    await run.done;
    for (const { fromSeconds, toSeconds } of probes())
      expect(toSeconds - fromSeconds).toBeLessThan(10);
    expect(run.ended).toEqual([["long", "interrupted", null]]);
    const cut = await InProcessRun.whole(
      workflow("cut", { ...options, maxDuration: "300ms" }).step("s", () => measure(() => 1)),
    );
    expect(cut.summary().reasons.join()).toContain("the search was decided did not hold");
  });

  it("is rejected without a threshold, with an abort, or with a meaningless load", () => {
    const rate = { from: 1, to: 2 };
    const make = (options: object) => () => workflow("w", options as WorkflowOptions);
    const thresholds = ["errors.rate < 1%"];
    expect(make({ breakpoint: { rate } })).toThrow("needs thresholds that can break");
    const abort = [{ threshold: "errors.rate < 1%", abortOnFail: true }];
    expect(make({ breakpoint: { rate }, thresholds: abort })).toThrow("abortOnFail would end");
    expect(make({ breakpoint: { rate, vus: rate }, thresholds })).toThrow("either a rate or vus");
    expect(make({ breakpoint: { rate: { from: 2, to: 1 } }, thresholds })).toThrow(
      "less than from",
    );
    expect(make({ breakpoint: { rate, hodl: 1 }, thresholds })).toThrow('did you mean "hold"');
    expect(make({ breakpoint: { rate }, rate: 5, thresholds })).toThrow("exclude each other");
    expect(make({ breakpoint: { vus: rate }, maxVus: 5, thresholds })).toThrow(
      "maxVus does not go",
    );
    const one = flow("one", { rate: 1, duration: 1 }, async () => undefined);
    const mixed = { breakpoint: { rate }, thresholds } as never;
    expect(() => mix([one.weight(1)], mixed)).toThrow("not with a mix");
  });
});

describe("a throttle", () => {
  it.each<[string, WorkflowOptions]>([
    ["closed", { vus: 5, duration: "1s", maxRate: 40 }],
    ["closed with warm-up", { vus: 5, duration: "700ms", warmup: "300ms", maxRate: 40 }],
    ["stages", { startVus: 5, stages: [{ duration: "1s", vus: 1 }], maxRate: 40 }],
    ["shared", { vus: 5, iterations: 40, maxRate: 40 }],
    ["per user", { vus: 5, iterationsPerVu: 8, maxRate: 40 }],
  ])("limits the starts of all users on two cores: %s", async (_, options) => {
    const begun: number[] = [];
    const flow = workflow("w", options).step("s", () => {
      begun.push(performance.now());
      return measure(() => 1);
    });
    const before = performance.now();
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(run.ended).toEqual([["w", "completed", null]]);
    expect(begun.length).toBeGreaterThan(0);
    // Two cores begin with one each at once; then 25 ms apart. A busy machine is late, never early.
    for (const [at, moment] of begun.entries())
      expect(moment - before).toBeGreaterThan((at - 2) * 25);
    if ("iterations" in options || "iterationsPerVu" in options) expect(begun).toHaveLength(40);
  });
});

describe("random arrivals", () => {
  it("follow the seed, on one core and on three", async () => {
    const options = { rate: 100, duration: "300ms", arrivals: "poisson" } as const;
    const run = async (cores: number, seed: string) => {
      const flow = workflow("w", options).step("s", () => measure(() => 1));
      const made = await InProcessRun.whole(flow, { cores, overrides: { seed } });
      const { missed = 0, started = 0 } = made.workflow("w").data().arrivals ?? {};
      return started + missed;
    };
    const [one, three, other] = [await run(1, "a"), await run(3, "a"), await run(3, "b")];
    expect(three).toBe(one);
    expect([one, other]).not.toEqual([30, 30]);
  });
});

it("averages the levels of stairs exactly", async () => {
  const rateStages = stairs.rate({ from: 20, to: 100, steps: 3, hold: "200ms" });
  const flow = workflow("w", { rateStages }).step("s", () => measure(() => 1));
  const run = await InProcessRun.whole(flow, { cores: 2 });
  expect(run.summary().workflows[0]?.arrivals?.targetPerSecond).toBe(60);
});

it("uses a manually changed load as target, with one note", async () => {
  const flow = workflow("w", { rate: 20, duration: "1s" }).step("s", () => measure(() => 1));
  const run = await InProcessRun.start(flow, { cores: 2 });
  await until(() => run.workflow("w").elapsedMs > 300);
  for (const factor of [1.5, 2.25, 3.375, 5.0625, 5.0625]) run.scale(factor);
  await run.done;
  const { notes, workflows } = run.summary();
  expect(notes.filter((note) => note.includes("changed by hand"))).toEqual([
    "the load was changed by hand during the run, in the end to 506 % of the plan",
  ]);
  const { achievedPerSecond = 0, targetPerSecond = 0 } = workflows[0]?.arrivals ?? {};
  expect(targetPerSecond).toBeGreaterThan(25);
  expect(Math.abs(achievedPerSecond - targetPerSecond)).toBeLessThan(0.3 * targetPerSecond);
});
