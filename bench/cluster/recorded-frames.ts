/** The merged frames of one worker over time, as its machine makes them of those of its cores. */

import { Random } from "../../src/core/base/random.ts";
import type { MergedFigures } from "../../src/core/run/job/core-messages.ts";
import { StatsRecorder } from "../../src/core/run/stats/stats-recorder.ts";
import { MergedPart } from "../../src/core/tiers/worker/merged-part.ts";
import { ERROR_KINDS } from "../../src/protocols/protocol.ts";

const WINDOWS_PER_SECOND = 10;
const WINDOW_MS = 1_000 / WINDOWS_PER_SECOND;
const SHAPE = { errorKinds: ERROR_KINDS.length, corrected: false };

interface RecordedLoad {
  readonly cores: number;
  readonly steps: number;
  /** Calls of each core per second. */
  readonly rate: number;
}

export function stepNames(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `step ${at + 1}`);
}

/** So many, each written against the one before. */
export function recordFrames(count: number, load: RecordedLoad): readonly MergedFigures[] {
  const random = new Random("frames");
  const names = stepNames(load.steps);
  const part = new MergedPart(1, null, SHAPE);
  const recorders = Array.from({ length: load.cores }, () => new StatsRecorder(SHAPE));
  for (const core of recorders.keys()) part.attach(core);
  return Array.from({ length: count }, (_, at) => {
    for (const [core, recorder] of recorders.entries()) {
      for (let call = 0; call < load.rate / WINDOWS_PER_SECOND; call++) {
        const step = recorder.stepNumber(names[random.below(names.length)] ?? "", "http");
        const latencyUs = latency(random);
        recorder.step(step).record(-1, 200, latencyUs, latencyUs, latencyUs - 50, -1, -1, 900, 200);
        recorder.step(step).sent(1);
      }
      recorder.counts.completed += Math.ceil(load.rate / WINDOWS_PER_SECOND / load.steps);
      for (let lag = 0; lag < 5; lag++) recorder.loopLag.record(random.below(2_000));
      recorder.seal(at + 1, { users: 50, target: 50, cpuMs: 60, lagMsMax: 2 });
      const measuredMs = (at + 1) * WINDOW_MS;
      const moment = { measuredMs, warmingUp: false, target: 50, arrivalsWaiting: 0 };
      const bytes = recorder.frame(moment, false);
      const health = { cpu: 0.6, residentBytes: 120e6, activeUsers: 50 };
      const event = { kind: "frame", execution: 1, part: null, bytes, health } as const;
      recorder.acknowledged(part.take(core, event, measuredMs) ?? 0);
    }
    const written = part.write((at + 1) * WINDOW_MS);
    part.acknowledged(at + 1);
    return written;
  });
}

/** Some milliseconds, with a tail: about 20 ms on average. */
function latency(random: Random): number {
  const spread = Math.exp(random.float() + random.float() + random.float() - 1.5);
  return Math.round(15_000 * spread * (random.chance(0.01) ? 10 : 1));
}
