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

describe("the timeout of a job over its datacenters (AD-34.32)", () => {
  const cases: readonly (readonly [
    what: string,
    elapsedSeconds: number,
    clocks: readonly DatacenterClock[],
    cause: string | null,
  ])[] = [
    ["is in time on its limit", 300, [clock()], null],
    ["is late beyond its limit", 300.1, [clock()], "overall"],
    [
      "is extended by the longest extension (AD-34.44)",
      315,
      [clock(), clock({ extendedMs: 15 * SECOND })],
      null,
    ],
    [
      "is late beyond the longest extension",
      316,
      [clock(), clock({ extendedMs: 15 * SECOND })],
      "overall",
    ],
    ["ignores finished datacenters (C40-24)", 999, [clock({ ended: "otherwise" })], null],
    [
      "times out when one datacenter is over its limit",
      10,
      [clock(), clock({ overdue: late("overall") })],
      "dc_timeout",
    ],
    [
      "times out when one datacenter is stuck",
      10,
      [clock(), clock({ overdue: late("stuck") })],
      "dc_timeout",
    ],
    [
      "times out when one datacenter is late in spite of its extensions (C40-15)",
      10,
      [clock({ overdue: late("overall"), extended: 1, extendedMs: SECOND })],
      "dc_timeout",
    ],
    [
      "waits while a stuck datacenter has an extended worker",
      10,
      [clock({ overdue: late("stuck"), extended: 1 })],
      null,
    ],
    [
      "times out all datacenters when one was timed out",
      10,
      [clock(), clock({ ended: "timedOut" })],
      "dc_timeout",
    ],
    ["continues when one of two datacenters is silent (C40-13)", 10, [clock(), clock(stuck)], null],
    ["times out when both datacenters are silent", 10, [clock(stuck), clock(stuck)], "all_stuck"],
    [
      "times out when all unfinished datacenters are silent",
      10,
      [clock({ ended: "otherwise" }), clock(stuck)],
      "all_stuck",
    ],
    [
      "continues when one silent datacenter has an extended worker (AD-34.45)",
      10,
      [clock(stuck), clock({ ...stuck, extended: 1 })],
      null,
    ],
    ["is not stuck on the threshold", 10, [clock({ idleMs: 180 * SECOND })], null],
  ];
  for (const [what, seconds, clocks, cause] of cases)
    it(what, () => {
      const job = { elapsedMs: seconds * SECOND, timeoutMs: 300 * SECOND };
      expect(globalTimeout(job, clocks, LIMITS)?.cause ?? null).toBe(cause);
    });

  it("is infinite where the job has no limit and advances", () => {
    const job = { elapsedMs: Number.MAX_SAFE_INTEGER, timeoutMs: null };
    expect(globalTimeout(job, [clock()], LIMITS)).toBeNull();
  });
});
