import { describe, expect, it } from "vitest";
import { StepRecorder, StepTotals } from "../stats/step-stats.ts";
import { WindowStore } from "../stats/window-store.ts";
import { STEP_RULES } from "../stats/windows.ts";
import { latencyWindows } from "./over-time.ts";

const secondsAt = (ms: number): number => ms / 1_000;

/** Each call: error kind, latency, service, first byte, connect, TLS in microseconds. */
function windowsOf(...seconds: readonly (readonly number[])[][]) {
  const store = new WindowStore(STEP_RULES);
  const recorder = new StepRecorder(1, true);
  const totals = new StepTotals(1, true);
  for (const [at, calls] of seconds.entries()) {
    for (const [
      kind = -1,
      latency = 0,
      service = 0,
      firstByte = -1,
      connect = -1,
      tls = -1,
    ] of calls)
      recorder.record(kind, 0, latency, service, firstByte, connect, tls, 0, 0);
    const content = recorder.fold(totals, at + 1);
    if (content !== null) store.add({ startMs: at * 1_000, widthMs: 100, content });
  }
  return latencyWindows(store, secondsAt, 1);
}

describe("windows of latencies", () => {
  it("show the phases of answered calls, which add up to the service time", () => {
    const { phases } = windowsOf(
      [
        [-1, 60_000, 50_000, 40_000, 10_000, 20_000],
        [-1, 30_000, 30_000, 20_000],
      ],
      // Never answered: in no phase.
      [[0, 900_000, 900_000]],
    );
    expect(phases).toEqual({
      connectMs: [5, null],
      tlsMs: [10, null],
      waitingMs: [15, null],
      bodyMs: [10, null],
    });
  });

  it("count failures separately", () => {
    const { atSeconds, failures, histograms } = windowsOf(
      [
        [-1, 1_000],
        [0, 2_000],
      ],
      [[-1, 3_000]],
    );
    expect(atSeconds).toEqual([0, 1]);
    expect(histograms.map(({ count }) => count)).toEqual([[1, 1], [1]]);
    expect(failures?.map(({ upToMs }) => upToMs)).toEqual([[2], []]);
  });
});
