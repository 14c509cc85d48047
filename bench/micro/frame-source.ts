/** An executor core of `coordinator.ts` without its calls: real frames of 50 steps, requested one by one. */

import { Random } from "../../src/core/base/random.ts";
import { StatsRecorder } from "../../src/core/load/stats/stats-recorder.ts";
import { ERROR_KINDS } from "../../src/protocols/protocol.ts";

const STEPS = 50;
/** Calls of one step between two frames: 50,000 per second on each of two cores. */
const CALLS = 100;
const VALUES = 1 << 16;

/** Log-normal around 10 ms, in microseconds. */
function latencies(): Float64Array {
  const random = new Random("coordinator");
  return Float64Array.from({ length: VALUES }, () => {
    let sum = -6;
    for (let draw = 0; draw < 12; draw++) sum += random.float();
    return 10_000 * Math.exp(sum);
  });
}

const stats = new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected: false });
const values = latencies();
let next = Number(process.argv[2]) * 997;

process.on("message", ({ held, window }: { held: number; window: number }) => {
  stats.acknowledged(held);
  for (let at = 0; at < STEPS; at++) {
    const step = stats.step(stats.stepNumber(`step ${at + 1}`, "http"));
    for (let call = 0; call < CALLS; call++) {
      const latency = values[next++ & (VALUES - 1)] ?? 0;
      step.record(-1, 200, latency, latency, latency * 0.9, -1, -1, 238, 57);
    }
  }
  stats.seal(window, { users: 800, target: 800, cpuMs: 90, lagMsMax: 1 });
  const moment = { measuredMs: window * 100, warmingUp: false, target: 800, arrivalsWaiting: 0 };
  process.send?.(stats.frame(moment, false));
});
process.on("disconnect", () => process.exit());
