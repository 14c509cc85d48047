import { expect, it } from "vitest";
import { waitForClock } from "./clock-wait.ts";

async function waitFrom(
  behindMs: number,
  jumpAt: number,
): Promise<{ waited: number; told: number[] }> {
  let waited = 0;
  const told: number[] = [];
  await waitForClock({
    behindMs: () => (waited >= jumpAt ? 0 : Math.max(0, behindMs - waited)),
    pause: (ms) => {
      waited += ms;
      return Promise.resolve();
    },
    onBehind: (ms) => told.push(ms),
  });
  return { waited, told };
}

it("lets a node wait until its clock has caught up with its log (HLC-5)", async () => {
  expect(await waitFrom(2_500, Number.POSITIVE_INFINITY)).toEqual({ waited: 2_500, told: [2_500] });
});

it("ends early when the clock is set right", async () => {
  expect(await waitFrom(3_600_000, 5_000)).toEqual({ waited: 5_000, told: [3_600_000] });
});

it("does not hold up a node whose clock is right", async () => {
  expect(await waitFrom(0, 0)).toEqual({ waited: 0, told: [] });
});
