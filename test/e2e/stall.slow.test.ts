/**
 * The short form of the stall: real time, because it is what is measured. `npx tsx tools/check-stall.ts` is the long
 * form, 10 s at 1000/s, with a tolerance of 2 %.
 */

import { expect, it } from "vitest";
import { analytical, runThroughStall, type StallPlan } from "./stall.ts";

/** Long enough for the stall to be asked for, and over, before the run is. */
const plan: StallPlan = { rate: 200, seconds: 6, stallMs: 600 };

it("knows the analytical answer", () => {
  const long = { rate: 1_000, seconds: 10, stallMs: 1_000 };
  expect([analytical(long, 99), analytical(long, 99.9)].map(Math.round)).toEqual([900, 990]);
});

it("an open model counts the waiting that a stall causes", async () => {
  const summary = await runThroughStall(plan, ["--rate", String(plan.rate)]);
  const [workflow] = summary.workflows;
  const { latencyMs } = workflow?.steps[0] ?? {};
  expect(workflow?.corrected).toBe(true);
  expect(latencyMs?.count).toBe(plan.rate * plan.seconds);
  // From below it must be exact; from above, a busy machine adds its own delays.
  expect(latencyMs?.p99).toBeGreaterThan(analytical(plan, 99) * 0.98);
  expect(latencyMs?.p99_9).toBeGreaterThan(analytical(plan, 99.9) * 0.98);
});

it("a closed model reports that it does not correct, and shows why", async () => {
  const summary = await runThroughStall({ ...plan, rate: 30 }, ["--vus", "2"]);
  const [workflow] = summary.workflows;
  expect(workflow?.corrected).toBe(false);
  expect(summary.notes.join(" ")).toMatch(/closed model .* latencies are not corrected/);
  // Two users hold two requests during the stall: it disappears from the percentiles.
  const { max = 0, p90 = max } = workflow?.steps[0]?.latencyMs ?? {};
  expect(max).toBeGreaterThan(plan.stallMs * 0.9);
  expect(p90).toBeLessThan(max / 2);
});
