import { describe, expect, it } from "vitest";
import { type DatacenterClock, globalTimeout } from "./joint-timeout.ts";

const SECOND = 1_000;
const LIMITS = { allStuckMs: 180 * SECOND };

function clock(changes: Partial<DatacenterClock> = {}): DatacenterClock {
  return {
    ...{ datacenter: "dc1", ended: "no", idleMs: 0, extendedMs: 0, extended: 0, overdue: null },
    ...changes,
  };
}

const late = (cause: "overall" | "stuck") => ({ cause, reason: "late" });
const stuck = { idleMs: 181 * SECOND };

describe("the time of a job over its datacenters (AD-34.32)", () => {
  const cases: readonly (readonly [
    what: string,
    elapsedSeconds: number,
    clocks: readonly DatacenterClock[],
    cause: string | null,
  ])[] = [
    ["in time on its limit", 300, [clock()], null],
    ["beyond it", 300.1, [clock()], "overall"],
    [
      "the longest extension counts (AD-34.44)",
      315,
      [clock(), clock({ extendedMs: 15 * SECOND })],
      null,
    ],
    ["and no more than that", 316, [clock(), clock({ extendedMs: 15 * SECOND })], "overall"],
    ["those that have ended are not late (C40-24)", 999, [clock({ ended: "otherwise" })], null],
    ["one has taken too long", 10, [clock(), clock({ overdue: late("overall") })], "dc_timeout"],
    ["one is stuck", 10, [clock(), clock({ overdue: late("stuck") })], "dc_timeout"],
    [
      "one is late beside its extensions (C40-15)",
      10,
      [clock({ overdue: late("overall"), extended: 1, extendedMs: SECOND })],
      "dc_timeout",
    ],
    [
      "one waits for a worker that was given more time",
      10,
      [clock({ overdue: late("stuck"), extended: 1 })],
      null,
    ],
    [
      "one was timed out: so are the others",
      10,
      [clock(), clock({ ended: "timedOut" })],
      "dc_timeout",
    ],
    ["one of two is silent (C40-13)", 10, [clock(), clock(stuck)], null],
    ["both are", 10, [clock(stuck), clock(stuck)], "all_stuck"],
    ["all that have not ended are", 10, [clock({ ended: "otherwise" }), clock(stuck)], "all_stuck"],
    [
      "one of them waits for a worker (AD-34.45)",
      10,
      [clock(stuck), clock({ ...stuck, extended: 1 })],
      null,
    ],
    ["on the threshold", 10, [clock({ idleMs: 180 * SECOND })], null],
  ];
  for (const [what, seconds, clocks, cause] of cases)
    it(what, () => {
      const job = { elapsedMs: seconds * SECOND, timeoutMs: 300 * SECOND };
      expect(globalTimeout(job, clocks, LIMITS)?.cause ?? null).toBe(cause);
    });

  it("has no end where the job has no limit and advances", () => {
    const job = { elapsedMs: Number.MAX_SAFE_INTEGER, timeoutMs: null };
    expect(globalTimeout(job, [clock()], LIMITS)).toBeNull();
  });
});
