/** What is recorded of a call, by the moments it was due, began and ended. */

import { expect, it } from "vitest";
import { ByteReader } from "../core/base/bytes.ts";
import { WHOLE_ITERATION } from "../core/run/stats/group-stats.ts";
import { Histogram } from "../core/run/stats/histogram.ts";
import type { Name } from "../core/run/stats/names.ts";
import { StepTotals } from "../core/run/stats/step-stats.ts";
import { type CallRecord, ERROR_KINDS, type ErrorKind } from "../protocols/protocol.ts";
import { readFrameHead, readNewNames } from "./frame.ts";
import { Recorder } from "./recorder.ts";

const MOMENT = { measuredMs: 1_000, warmingUp: false, target: 0, arrivalsMissed: 0 };

function recorded(corrected = false) {
  const recorder = new Recorder(corrected);
  const number = recorder.stepNumber("s", "http");
  recorder.measureFrom(1_000);
  recorder.measureUntil(2_000);
  return {
    recorder,
    call(startedAt: number, endedAt: number, errorKind: ErrorKind | null = null) {
      const times = { startedAt, endedAt, firstByteAt: endedAt, connectMs: -1, tlsMs: -1 };
      const record: CallRecord = { errorKind, status: 0, ...times, bytesIn: 10, bytesOut: 1 };
      recorder.call(number, record, startedAt, startedAt, endedAt);
    },
    totals(): StepTotals {
      const reader = new ByteReader(recorder.frame({ ...MOMENT, loopLagUs: new Histogram() }));
      expect(readFrameHead(reader)).toBeDefined();
      for (const names of [["s"], [], [WHOLE_ITERATION]]) {
        const told: Name[] = [];
        expect(readNewNames(reader, told)).toBe(true);
        expect(told.map(({ name }) => name)).toEqual(names);
      }
      expect([reader.varint(), reader.varint()]).toEqual([1, number]);
      const totals = new StepTotals(ERROR_KINDS.length, corrected);
      expect(totals.applyChanges(reader, null)).toBe(true);
      return totals;
    },
  };
}

it("calls belong to the measured time by their due moment, and to its rate by their end", () => {
  const { call, totals } = recorded();
  call(100, 900); //    warm-up, all of it
  call(900, 1_700); //  of the warm-up, but its end makes part of the rate
  call(1_700, 1_900, "status");
  call(1_900, 2_700, "status"); // in the graceful stop: a call like any other, in no rate
  const { failedCount, inside, latency, requests } = totals();
  expect([requests, failedCount]).toEqual([2, 2]);
  expect(inside).toEqual({ calls: 2, failed: 1, bytesIn: 20, bytesOut: 2 });
  expect([latency.count, latency.max]).toEqual([2, 800_000]);
});

it("what never reached the wire is a failure without latency, and successes have their own", () => {
  const { call, recorder, totals } = recorded(true);
  call(1_100, 1_200);
  call(1_100, 1_101, "refused");
  call(1_100, 1_110, "status");
  recorder.exception(0, 1_100, 1_100);
  const { failedCount, latency, okLatency, requests, service } = totals();
  expect([requests, failedCount]).toEqual([4, 3]);
  expect([latency.count, service.count, latency.min]).toEqual([2, 2, 10_000]);
  expect(okLatency.count).toBe(1);
  expect(okLatency.quantile(0) / 1_000).toBeCloseTo(100, 0);
  expect(okLatency.mean).toBe(100_000);
});
