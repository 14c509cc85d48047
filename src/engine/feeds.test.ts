/** Feeds under every load model, on a simulated clock: the tests assert counts. */

import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { ArrivalClock } from "../core/load/plan/arrivals.ts";
import type { Stage } from "../core/load/plan/load.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { measure } from "../workflow/custom-result.ts";
import { feed } from "../workflow/feed.ts";
import { flow } from "../workflow/flow.ts";
import { mix } from "../workflow/mix.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";

// Before the imports: the engine binds its clock when it is loaded.
vi.hoisted(() =>
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
  }),
);

const FOUR = ["a", "b", "c", "d"];
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Options = Parameters<typeof InProcessRun.start>[1];

async function whole(tests: Parameters<typeof InProcessRun.start>[0], options: Options) {
  const run = await InProcessRun.start(tests, options);
  let isOver = false;
  void run.done.then(() => {
    isOver = true;
  });
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(4);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return run;
}

function leasesOf(run: InProcessRun): string[] {
  return run.events.flatMap(({ event }) => (event.kind === "lease" ? [event.name] : []));
}

/** Each row is used by a call of its own name. */
function usingRows(options: WorkflowOptions, rows: ReturnType<typeof feed.rows<string>>) {
  const used: string[] = [];
  const made = workflow("w", options)
    .data("row", rows)
    .step("s", async ({ data }) => {
      used.push(data.row);
      await pause(5);
      return measure(() => 1);
    });
  return { made, used };
}

it("uses repeatable rows without messages, however few they are", async () => {
  for (const order of ["sequential", "random"] as const) {
    const { made, used } = usingRows({ vus: 4, duration: "300ms" }, feed.rows(FOUR, { order }));
    const run = await whole(made, { cores: 2, leaseMs: 50 });
    expect(leasesOf(run)).toEqual([]);
    expect(used.length).toBeGreaterThan(100);
    expect(new Set(used).size).toBe(4);
  }
});

it("uses sequential rows equally often over all cores", async () => {
  const options = { rate: 200, maxVus: 50, duration: "400ms" };
  const { made, used } = usingRows(options, feed.rows(FOUR));
  await whole(made, { cores: 2, leaseMs: 50 });
  expect(FOUR.map((row) => used.filter((one) => one === row).length)).toEqual([20, 20, 20, 20]);
});

it("gives shared iterations one row each, in the order of their numbers", async () => {
  const rows = Array.from({ length: 60 }, (_, at) => `row ${at}`);
  const { made, used } = usingRows({ iterations: 60, vus: 5 }, feed.rows(rows));
  await whole(made, { cores: 2, leaseMs: 3 });
  expect(used.toSorted()).toEqual(rows.toSorted());
});

it("leases rows of order once ahead in blocks that grow until users need not wait", async () => {
  const rows = Array.from({ length: 4_000 }, (_, at) => `row ${at}`);
  const { made, used } = usingRows({ vus: 20, duration: "1s" }, feed.rows(rows, { order: "once" }));
  const run = await whole(made, { cores: 2, leaseMs: 40 });
  expect(new Set(used).size).toBe(used.length);
  // 20 users with 5 ms each; blocks of 100 rows for 10 users would be 2 round trips in 50 ms.
  expect(used.length).toBeGreaterThan(3_000);
  expect(leasesOf(run).length).toBeLessThan(30);
});

it("counts a user that waits for rows until the plan ends as a missed arrival", async () => {
  const rows = feed.rows(FOUR, { order: "once" });
  const { made, used } = usingRows({ rate: 100, maxVus: 20, duration: "200ms" }, rows);
  const run = await whole(made, { cores: 1, leaseMs: 10_000 });
  const { missed, started } = run.workflow("w").data().arrivals ?? { missed: -1, started: -1 };
  expect([used.length, started, missed]).toEqual([0, 0, 20]);
});

it("counts waiting for rows as generator time, and makes it the limit", async () => {
  const rows = Array.from({ length: 400 }, (_, at) => `row ${at}`);
  const { made } = usingRows({ vus: 20, duration: "1s" }, feed.rows(rows, { order: "once" }));
  const run = await whole(made, { cores: 2, leaseMs: 200 });
  const { cause, limited, reason } = run.summary().generator;
  expect([cause, limited]).toEqual(["data", true]);
  expect(reason).toMatch(/^virtual users of "w" spent \d.* % of their time waiting for rows/);
});

const MODELS = {
  rate: { rate: 90, maxVus: 12, duration: "500ms" },
  "few users": { rate: 90, maxVus: 2, duration: "500ms" },
  ramp: { startRate: 0, rateStages: [{ duration: "500ms", rate: 120 }], maxVus: 12 },
  poisson: { rate: 90, arrivals: "poisson", maxVus: 12, duration: "500ms" },
  "warm-up": { rate: 90, maxVus: 12, warmup: "200ms", duration: "300ms" },
} as const;
const FEEDS = {
  none: null,
  sequential: feed.rows(FOUR),
  shuffled: feed.rows(FOUR, { shuffle: true }),
  random: feed.rows(FOUR, { order: "random" }),
  "per user": feed.rows(FOUR, { per: "user" }),
  "once per user": feed.rows(FOUR, { order: "once", per: "user" }),
  once: feed.rows(
    Array.from({ length: 500 }, (_, at) => String(at)),
    { order: "once" },
  ),
  generated: feed.generate((at) => String(at)),
} as const;

/** Arrivals of the measured time, computed from the plan alone. */
function dueOf(model: keyof typeof MODELS, seed: string): number {
  const [from, to] = model === "ramp" ? [0, 120] : [90, 90];
  const stages: Stage[] = [{ durationMs: 500, from, to }];
  const alone = { index: 0, count: 1, users: [1] };
  const clock = new ArrivalClock(stages, alone, model === "poisson" ? seed : null);
  const measuredFrom = model === "warm-up" ? 200 - 1e-4 : 0;
  let due = 0;
  for (let at = clock.peek(); at !== null; clock.advance(), at = clock.peek())
    if (at >= measuredFrom && at <= 500) due++;
  return due;
}

it("begins or misses every due arrival, under every open model and feed", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...(Object.keys(MODELS) as (keyof typeof MODELS)[])),
      fc.constantFrom(...(Object.keys(FEEDS) as (keyof typeof FEEDS)[])),
      fc.record({
        cores: fc.integer({ min: 1, max: 3 }),
        leaseMs: fc.constantFrom(0, 30, 400, 5_000),
        serviceMs: fc.constantFrom(1, 40, 700),
        isMix: fc.boolean(),
      }),
      async (model, kind, { cores, isMix, leaseMs, serviceMs }) => {
        const rows = FEEDS[kind];
        const data = rows === null ? {} : { row: rows };
        const body = async ({ step }: { step: (name: string, code: () => unknown) => unknown }) => {
          await step("s", () => pause(serviceMs));
        };
        const load = MODELS[model];
        const options = { ...load, gracefulStop: "1s" } as WorkflowOptions;
        const made = isMix
          ? mix([flow("f", { data }, body).weight(2), flow("g", {}, body).weight(1)], options)
          : flow("f", { ...options, data }, body);
        const run = await whole(made, { cores, leaseMs, overrides: { seed: "7" } });
        const all = [...run.workflows.values()].map((one) => one.data().arrivals);
        const begun = all.reduce((sum, one) => sum + (one?.started ?? 0), 0);
        const missed = all.reduce((sum, one) => sum + (one?.missed ?? 0), 0);
        // A mix ends when a flow has no row for one of its users.
        if (isMix && kind === "once per user") return;
        expect([model, kind, begun + missed]).toEqual([
          model,
          kind,
          dueOf(model, `7/${isMix ? "mix" : "f"}/arrivals`),
        ]);
      },
    ),
    { numRuns: 40 },
  );
});
