import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Histogram } from "./histogram.ts";
import { STATUS_OTHER, StepRecorder, StepTotals } from "./step-stats.ts";

const KINDS = 3;

const call = fc.record({
  kind: fc.integer({ min: -1, max: KINDS - 1 }),
  status: fc.constantFrom(0, 200, 204, 404, 500, 599, 600, 1006, 70_000),
  latency: fc.integer({ min: -1, max: 10_000_000 }),
  bytes: fc.nat(5_000),
});
const batches = fc.array(fc.array(call, { maxLength: 30 }), { minLength: 1, maxLength: 8 });
type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

function record(recorder: StepRecorder, { bytes, kind, latency, status }: Call): void {
  recorder.record(kind, status, latency, latency / 2, latency, -1, -1, bytes, 57);
}

describe("totals of a step", () => {
  it("contain every record, and their windows each exactly once", () => {
    fc.assert(
      fc.property(batches, fc.boolean(), (all, corrected) => {
        const recorder = new StepRecorder(KINDS, corrected);
        const totals = new StepTotals(KINDS, corrected);
        const seen = { calls: 0, failed: 0, latencies: 0, kinds: new Array(KINDS).fill(0) };
        for (const [at, batch] of all.entries()) {
          for (const one of batch) record(recorder, one);
          const window = recorder.fold(totals, at + 1);
          expect(window === null).toBe(batch.length === 0);
          seen.calls += window?.calls ?? 0;
          seen.failed += window?.failed ?? 0;
          seen.latencies += window?.latency.total ?? 0;
          for (const [kind, count] of window?.kinds.entries() ?? []) seen.kinds[kind] += count;
        }
        const calls = all.flat();
        const latency = new Histogram();
        for (const one of calls) if (one.latency >= 0) latency.record(one.latency);
        expect(totals.requests).toBe(calls.length);
        expect(totals.latency.count).toBe(latency.count);
        expect(totals.latency.quantiles([0.5, 0.99])).toEqual(latency.quantiles([0.5, 0.99]));
        expect(totals.latency.mean).toBeCloseTo(latency.mean, 3);
        expect(totals.bytesIn).toBe(calls.reduce((sum, one) => sum + one.bytes, 0));
        expect(seen).toEqual({
          calls: totals.requests,
          failed: totals.failedCount,
          latencies: latency.count,
          kinds: [...totals.failed],
        });
      }),
    );
  });

  it("do not count interrupted calls as requests", () => {
    const recorder = new StepRecorder(KINDS, false);
    const totals = new StepTotals(KINDS, false);
    expect(recorder.fold(totals, 1)).toBeNull();
    recorder.interrupted(2);
    expect(recorder.fold(totals, 1)).toMatchObject({ calls: 0 });
    expect([totals.interrupted, totals.requests]).toEqual([2, 0]);
  });

  it("keep one histogram when latency and service time are the same", () => {
    const totals = new StepTotals(KINDS, false);
    expect(totals.service).toBe(totals.latency);
    const corrected = new StepTotals(KINDS, true);
    expect(corrected.service).not.toBe(corrected.latency);
  });

  it("bound the statuses a peer can invent", () => {
    const recorder = new StepRecorder(KINDS, false);
    for (let status = 1_000; status < 3_000; status++)
      recorder.record(-1, status, 1, 1, -1, -1, -1, 0, 0);
    const totals = new StepTotals(KINDS, false);
    recorder.fold(totals, 1);
    expect(totals.statuses.size).toBeLessThanOrEqual(65);
    expect(totals.statuses.get(STATUS_OTHER)).toBe(2_000 - 64);
  });
});
