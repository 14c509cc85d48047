import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type JobLimit,
  overdueAt,
  overdueFrom,
  type TimeoutTracking,
  type TrackingChange,
  track,
  UNTRACKED,
} from "./job-timeout.ts";

const SECOND = 1_000;
const LIMITS = { stuckMs: 120 * SECOND };
const FIVE_MINUTES: JobLimit = { timeoutMs: 300 * SECOND, waitedMs: 0 };
const NO_LIMIT: JobLimit = { timeoutMs: null, waitedMs: 0 };

/** Changes at seconds of the run. */
function trackedBy(
  changes: readonly (readonly [at: number, change: TrackingChange])[],
  limit = FIVE_MINUTES,
): TimeoutTracking {
  return changes.reduce(
    (tracking, [at, change]) => track(tracking, change, at * SECOND, limit),
    UNTRACKED,
  );
}

const moved = (at: number): readonly [number, TrackingChange] => [
  at,
  { kind: "progress", progressAt: at * SECOND, advance: at },
];
const extended = (at: number, seconds: number, worker = "w"): readonly [number, TrackingChange] => [
  at,
  { kind: "extended", worker, ms: seconds * SECOND },
];

describe("the clock of a job (AD-34)", () => {
  const cases: readonly (readonly [
    what: string,
    tracking: TimeoutTracking,
    at: number,
    cause: string | null,
  ])[] = [
    ["is in time on its limit", trackedBy([moved(299)]), 300, null],
    ["is late beyond its limit", trackedBy([moved(299)]), 300.001, "overall"],
    ["is never stuck with an advance every 119 s", trackedBy([moved(119), moved(238)]), 299, null],
    ["is not stuck with a silence on the threshold", trackedBy([moved(10)]), 130, null],
    ["is stuck after a silence of 121 s", trackedBy([moved(10)]), 131, "stuck"],
    ["checks the limit before the standstill", trackedBy([moved(10)]), 301, "overall"],
    [
      "is in time at 322 s with extensions of 15 and 7.5 s",
      trackedBy([extended(50, 15), extended(100, 7.5), moved(300)]),
      322,
      null,
    ],
    [
      "is late at 330 s with extensions of 15 and 7.5 s",
      trackedBy([extended(50, 15), extended(100, 7.5), moved(300)]),
      330,
      "overall",
    ],
    [
      "is not stuck at 229 s with an extension at 110 s of silence",
      trackedBy([extended(110, 15)]),
      229,
      null,
    ],
    ["is stuck a full threshold after an extension", trackedBy([extended(110, 15)]), 231, "stuck"],
  ];
  for (const [what, tracking, at, cause] of cases)
    it(`${what} (AD-34.11, AD-34.42, AD-34.43)`, () => {
      const found = overdueAt(tracking, at * SECOND, FIVE_MINUTES, LIMITS);
      expect(found?.cause ?? null).toBe(cause);
      const from = overdueFrom(tracking, FIVE_MINUTES, LIMITS);
      expect(at * SECOND >= from - 1, "the next look is not after the moment").toBe(
        cause !== null || at * SECOND === from - 1,
      );
    });

  it("counts from acceptance, including the wait for cores", () => {
    const limit = { timeoutMs: 60 * SECOND, waitedMs: 50 * SECOND };
    expect(overdueAt(UNTRACKED, 10 * SECOND, limit, LIMITS)).toBeNull();
    expect(overdueAt(UNTRACKED, 10 * SECOND + 1, limit, LIMITS)?.cause).toBe("overall");
  });

  it("shows its limit and the granted extensions", () => {
    const found = overdueAt(
      trackedBy([extended(50, 22.5), moved(320)]),
      400_000,
      FIVE_MINUTES,
      LIMITS,
    );
    expect(found?.reason).toBe("it took longer than 5m00s and 22.5s that workers asked for");
  });

  it("at most doubles the limit, however many workers ask (C40-16)", () => {
    const asked = Array.from({ length: 100 }, (_, at) => extended(1, 15, `w${at}`));
    const tracking = trackedBy(asked);
    expect(tracking.extendedMs).toBe(300 * SECOND);
    expect(tracking.extended).toHaveLength(100);
    expect(trackedBy(asked, NO_LIMIT).extendedMs).toBe(1_500 * SECOND);
  });

  it("keeps granted time when the worker is gone (AD-34.62)", () => {
    const tracking = trackedBy([extended(5, 15), [6, { kind: "recovered", worker: "w" }]]);
    expect([tracking.extended, tracking.extendedMs, tracking.extensionMsMax]).toEqual([
      [],
      15 * SECOND,
      15 * SECOND,
    ]);
  });

  it("is no longer overdue when a later extension covers it, or when it advances (P4)", () => {
    const late = (cause: "overall" | "stuck"): readonly [number, TrackingChange] => [
      200,
      { kind: "overdue", cause, reason: "late" },
    ];
    expect(trackedBy([late("stuck")]).overdue).toEqual({
      cause: "stuck",
      reason: "late",
      at: 200_000,
    });
    expect(trackedBy([late("stuck"), moved(201)]).overdue).toBeNull();
    expect(trackedBy([late("stuck"), extended(201, 1)]).overdue).toBeNull();
    expect(trackedBy([late("overall"), extended(201, 1)]).overdue).toBeNull();
    expect(trackedBy([late("overall"), moved(201)]).overdue).not.toBeNull();
    const full = [extended(1, 300), late("overall"), extended(201, 15)] as const;
    expect(trackedBy(full).overdue).not.toBeNull();
  });

  it("never moves back, whatever the clocks of leaders say", () => {
    expect(
      trackedBy([moved(50), [40, { kind: "progress", progressAt: 0, advance: 1 }]]).progressAt,
    ).toBe(50 * SECOND);
    const ahead = trackedBy([[10, { kind: "progress", progressAt: 99 * SECOND, advance: 1 }]]);
    expect(ahead.progressAt).toBe(10 * SECOND);
  });
});

/**
 * Independent statement of the same rules, from the events instead of the tracked state: the last of each kind and a
 * sum.
 */
function judged(
  happened: readonly (readonly [at: number, change: TrackingChange])[],
  at: number,
  { timeoutMs, waitedMs }: JobLimit,
): "overall" | "stuck" | null {
  const grants = happened.flatMap(([when, change]) =>
    change.kind === "extended" ? [{ at: when * SECOND, ms: change.ms }] : [],
  );
  const moves = happened.flatMap(([when, { kind }]) =>
    kind === "progress" ? [when * SECOND] : [],
  );
  const granted = grants.reduce((sum, { ms }) => sum + ms, 0);
  const elapsed = waitedMs + at;
  if (timeoutMs !== null && elapsed > timeoutMs + Math.min(granted, timeoutMs)) return "overall";
  const lastMove = Math.max(0, ...moves);
  const lastGrant = grants.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
  const isSilent = at - lastMove > LIMITS.stuckMs;
  return isSilent && at - lastGrant > LIMITS.stuckMs ? "stuck" : null;
}

describe("any sequence of events of a job", () => {
  const change = fc.oneof(
    fc.constant({ kind: "progress" } as const),
    fc.record({
      kind: fc.constant("extended" as const),
      worker: fc.constantFrom("a", "b", "c"),
      ms: fc.constantFrom(15_000, 7_500, 3_750),
    }),
    fc.record({
      kind: fc.constant("recovered" as const),
      worker: fc.constantFrom("a", "b", "c"),
    }),
  );
  const story = fc.array(fc.tuple(fc.integer({ min: 1, max: 130 }), change), { maxLength: 12 });

  it("is judged by its limit first, then by its standstill (AD-34.10, AD-34.11)", () => {
    const limits = fc.record({
      timeoutMs: fc.constantFrom(null, 60_000, 300_000, 900_000),
      waitedMs: fc.constantFrom(0, 50_000),
    });
    fc.assert(
      fc.property(story, fc.integer({ min: 0, max: 400_000 }), limits, (steps, laterMs, limit) => {
        let now = 0;
        const happened = steps.map(([seconds, one]): readonly [number, TrackingChange] => {
          now += seconds;
          return one.kind === "progress" ? moved(now) : [now, one];
        });
        const at = now * SECOND + laterMs;
        const found = overdueAt(trackedBy(happened, limit), at, limit, LIMITS);
        expect(found?.cause ?? null).toBe(judged(happened, at, limit));
      }),
    );
  });

  it("has the sum of all extensions, and the longest of them (AD-34.41)", () => {
    fc.assert(
      fc.property(story, (steps) => {
        const happened = steps.map(([, one], at): readonly [number, TrackingChange] =>
          one.kind === "progress" ? moved(at) : [at, one],
        );
        const { extended: has, ...tracking } = trackedBy(happened, NO_LIMIT);
        const granted = happened.flatMap(([at, one]) =>
          one.kind === "extended" ? [{ ...one, at }] : [],
        );
        const lengths = granted.map(({ ms }) => ms);
        const lastAt = granted.at(-1)?.at;
        expect(tracking).toMatchObject({
          extendedMs: lengths.reduce((sum, ms) => sum + ms, 0),
          extensionMsMax: Math.max(0, ...lengths),
          extendedAt: lastAt === undefined ? null : lastAt * SECOND,
        });
        // A grant counts as progress of the job, too.
        if (lastAt !== undefined)
          expect(tracking.progressAt).toBeGreaterThanOrEqual(lastAt * SECOND);
        const last = (worker: string): string | undefined =>
          happened.findLast(([, one]) => "worker" in one && one.worker === worker)?.[1].kind;
        expect([...has].sort()).toEqual(["a", "b", "c"].filter((one) => last(one) === "extended"));
      }),
    );
  });
});
