/** Merged frames over time, as the machines of a worker and of a manager make them from those of cores. */

import { Random } from "../../src/core/base/random.ts";
import { MergedPart } from "../../src/core/cluster/worker/merged-part.ts";
import type { MergedFigures } from "../../src/core/load/job/core-messages.ts";
import { WorkflowAggregate } from "../../src/core/load/results/workflow-aggregate.ts";
import { StatsRecorder } from "../../src/core/load/stats/stats-recorder.ts";
import { ERROR_KINDS } from "../../src/protocols/protocol.ts";
import { recordedManifest, stepNames } from "./recorded-job.ts";

const WINDOWS_PER_SECOND = 10;
const WINDOW_MS = 1_000 / WINDOWS_PER_SECOND;
const SHAPE = { errorKinds: ERROR_KINDS.length, corrected: false };

interface RecordedLoad {
  readonly cores: number;
  readonly steps: number;
  /** Calls of each core per second. */
  readonly rate: number;
}

const HEALTH = { cpu: 0.6, residentBytes: 120e6, activeUsers: 50 };

/** Cores under load, one window after the other. */
class RecordedCores {
  readonly #random = new Random("frames");
  readonly #names: readonly string[];
  readonly #load: RecordedLoad;
  readonly #recorders: readonly StatsRecorder[];
  #windows = 0;

  constructor(load: RecordedLoad) {
    this.#load = load;
    this.#names = stepNames(load.steps);
    this.#recorders = Array.from({ length: load.cores }, () => new StatsRecorder(SHAPE));
  }

  get measuredMs(): number {
    return this.#windows * WINDOW_MS;
  }

  /** `take` returns the frame of a core that is acknowledged from now on. */
  next(take: (core: number, frame: Uint8Array) => number): void {
    this.#windows++;
    for (const [core, recorder] of this.#recorders.entries()) {
      this.#fill(recorder);
      const { measuredMs } = this;
      const moment = { measuredMs, warmingUp: false, target: 50, arrivalsWaiting: 0 };
      recorder.acknowledged(take(core, recorder.frame(moment, false)));
    }
  }

  #fill(recorder: StatsRecorder): void {
    const [names, random, { rate, steps }] = [this.#names, this.#random, this.#load];
    for (let call = 0; call < rate / WINDOWS_PER_SECOND; call++) {
      const step = recorder.stepNumber(names[random.below(names.length)] ?? "", "http");
      const latencyUs = latency(random);
      recorder.step(step).record(-1, 200, latencyUs, latencyUs, latencyUs - 50, -1, -1, 900, 200);
      recorder.step(step).sent(1);
    }
    recorder.counts.completed += Math.ceil(rate / WINDOWS_PER_SECOND / steps);
    for (let lag = 0; lag < 5; lag++) recorder.loopLag.record(random.below(2_000));
    recorder.seal(this.#windows, { users: 50, target: 50, cpuMs: 60, lagMsMax: 2 });
  }
}

/** Frames of a worker, one per window; each written against the previous one. */
export function recordFrames(count: number, load: RecordedLoad): readonly MergedFigures[] {
  const cores = new RecordedCores(load);
  const part = new MergedPart(1, null, SHAPE);
  for (let core = 0; core < load.cores; core++) part.attach(core);
  return Array.from({ length: count }, (_, at) => {
    cores.next((core, bytes) => {
      const event = { kind: "frame", execution: 1, part: null, bytes, health: HEALTH } as const;
      return part.take(core, event, cores.measuredMs) ?? 0;
    });
    const written = part.write(cores.measuredMs);
    part.acknowledged(at + 1);
    return written;
  });
}

/**
 * Frames of a datacenter, which reports several windows of its cores at once; each written against the previous one.
 */
export function recordMerged(
  count: number,
  windowsPerFrame: number,
  load: RecordedLoad,
): readonly Uint8Array[] {
  const cores = new RecordedCores(load);
  const aggregate = new WorkflowAggregate(recordedManifest(load.steps, load.cores), ERROR_KINDS);
  aggregate.started([...Array(load.cores).keys()], 0);
  return Array.from({ length: count }, (_, at) => {
    for (let window = 0; window < windowsPerFrame; window++)
      cores.next((core, bytes) => {
        const { held } = aggregate.frame(core, bytes, HEALTH, cores.measuredMs);
        return held;
      });
    return aggregate.tell(at);
  });
}

/** Some milliseconds, with a tail: about 20 ms on average. */
function latency(random: Random): number {
  const spread = Math.exp(random.float() + random.float() + random.float() - 1.5);
  return Math.round(15_000 * spread * (random.chance(0.01) ? 10 : 1));
}
