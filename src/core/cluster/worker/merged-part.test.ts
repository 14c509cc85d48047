/** Merged frames give a leader the same state as the frames of each core. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { FrameMerger } from "../../load/stats/frame-merger.ts";
import { StatsRecorder } from "../../load/stats/stats-recorder.ts";
import { MergedPart } from "./merged-part.ts";

const SHAPE = { errorKinds: 3, corrected: true };
const STEPS = ["home", "search", "pay"];
const CORES = [4, 7, 9];

class Core {
  readonly recorder = new StatsRecorder(SHAPE);
  readonly #random: Random;
  #window = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A frame with one window of calls. */
  frame(full = false): Uint8Array {
    const { recorder } = this;
    const random = this.#random;
    for (let call = random.below(6); call > 0; call--) {
      const step = recorder.stepNumber(STEPS[random.below(3)] ?? "", "http");
      const latency = random.below(100_000);
      const kind = random.chance(0.2) ? random.below(3) : -1;
      recorder.step(step).record(kind, 200, latency, latency, latency, -1, -1, 3, 4);
      recorder.counts.completed++;
    }
    recorder.loopLag.record(random.below(9_000));
    this.#window++;
    const lagMsMax = random.below(9);
    recorder.seal(this.#window, { users: 2, target: 3, cpuMs: 10, lagMsMax });
    const measuredMs = this.#window * 100;
    return recorder.frame({ measuredMs, warmingUp: false, target: 3, arrivalsWaiting: 1 }, full);
  }
}

/** Cores of one worker. One leader gets their frames merged, another one gets them per core. */
class Bench {
  readonly random: Random;
  readonly cores: ReadonlyMap<number, Core>;
  readonly part = new MergedPart(1, null, SHAPE);
  leader = new FrameMerger(SHAPE);
  readonly apart = new FrameMerger(SHAPE);
  now = 0;

  constructor(seed: number) {
    this.random = new Random(`${seed}`);
    this.cores = new Map(CORES.map((core) => [core, new Core(this.random.fork(`${core}`))]));
    for (const core of CORES) {
      this.part.attach(core);
      this.apart.attach(core);
    }
  }

  /** Each live core sends a window. */
  tell(cores: readonly number[] = CORES): void {
    this.now += 100;
    for (const core of cores) {
      const { recorder } = this.cores.get(core) as Core;
      const bytes = (this.cores.get(core) as Core).frame();
      const health = { cpu: 0.5, residentBytes: 1, activeUsers: 2 };
      const event = { kind: "frame", execution: 1, part: null, bytes, health } as const;
      const held = this.part.take(core, event, this.now);
      recorder.acknowledged(held ?? 0);
      this.apart.receive(core, bytes);
    }
  }

  /** Delivers the next merged frame to the leader, or loses it; its acknowledgement may be lost too. */
  carry(isLost: boolean, isUnheard: boolean): void {
    const { bytes, cores } = this.part.write(this.now);
    if (isLost) return;
    const { held, sound } = this.leader.receiveMerged("w1", bytes, cores);
    expect(sound).toBe(true);
    if (!isUnheard) this.part.acknowledged(held);
  }
}

/** All counts, with every cell of every histogram and window. */
function contentOf({ stats }: FrameMerger): unknown {
  const cells = (histogram: {
    forEachCell: (visit: (cell: number, count: number) => void) => void;
  }) => {
    const found: (readonly [number, number])[] = [];
    histogram.forEachCell((cell, count) => found.push([cell, count]));
    return found;
  };
  const steps = stats.stepNames.list.map(({ name }, at) => {
    const { tally } = stats.step(at);
    const windows = stats
      .windowsOf(at)
      .list()
      .map(({ content: { failedLatency, latency, ...counts }, startMs }) => {
        const both = [latency, failedLatency].map((one) => [
          one.total,
          ...one.quantiles([0.1, 0.5, 0.9]),
        ]);
        return { startMs, counts, both };
      });
    const histograms = tally.histograms.map(({ histogram }) => ({
      cells: cells(histogram),
      ...{ sum: Math.round(histogram.sum), min: histogram.min, max: histogram.max },
    }));
    return [
      name,
      { counts: [...tally.counts], keyed: [...tally.keyed], histograms, windows },
    ] as const;
  });
  return {
    steps: new Map(steps.sort(([a], [b]) => (a < b ? -1 : 1))),
    run: [...stats.run.counts],
    lag: cells(stats.runHistogram("loopLag")),
    ...{ load: stats.load.list(), moment: stats.moment, horizonMs: stats.horizonMs },
  };
}

function ofCores(merger: FrameMerger): unknown {
  return CORES.map((core) => ({
    progress: merger.progressOf(core),
    load: merger.loadOf(core)?.list(),
    lag: merger.runOf(core)?.histograms[2]?.histogram.quantiles([0.5, 0.99]),
  }));
}

describe("merged frames", () => {
  it("match the frames of each core, whichever of them are lost or not acknowledged", () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.tuple(fc.boolean(), fc.boolean()), { minLength: 1, maxLength: 20 }),
        (seed, losses) => {
          const bench = new Bench(seed);
          for (const [isLost, isUnheard] of losses) {
            bench.tell(CORES.filter(() => bench.random.chance(0.8)));
            bench.carry(isLost, isUnheard);
          }
          bench.tell();
          // Windows wait for the slowest running core.
          for (const merger of [bench.part, bench.apart, bench.leader])
            for (const core of CORES) merger.ended(core);
          bench.carry(false, false);
          expect(contentOf(bench.leader)).toEqual(contentOf(bench.apart));
          expect(ofCores(bench.leader)).toEqual(ofCores(bench.apart));
        },
      ),
      { numRuns: 100 },
    );
  });

  it("give a new leader everything any core has reported, including finished ones", () => {
    const bench = new Bench(3);
    for (let at = 0; at < 5; at++) {
      bench.tell();
      bench.carry(false, false);
    }
    for (const merger of [bench.part, bench.apart]) merger.ended(4);
    bench.tell([7, 9]);
    bench.leader = new FrameMerger(SHAPE);
    bench.leader.ended(4);
    expect(bench.part.restart()).toBe(true);
    bench.carry(false, false);
    expect(contentOf(bench.leader)).toEqual(contentOf(bench.apart));
    expect(ofCores(bench.leader)).toEqual(ofCores(bench.apart));
  });

  it("add nothing for a worker whose cores are all lost", () => {
    const bench = new Bench(5);
    bench.tell();
    bench.carry(false, false);
    const before = contentOf(bench.leader);
    for (const core of CORES.slice(1)) bench.leader.close(core);
    bench.tell();
    bench.carry(false, false);
    // One of the frames is accepted, with the request counts of the other cores in it.
    expect(contentOf(bench.leader)).not.toEqual(before);
    expect(ofCores(bench.leader)).toEqual(ofCores(bench.apart));
    bench.leader.close(4);
    const then = contentOf(bench.leader);
    bench.tell();
    bench.carry(false, false);
    expect(contentOf(bench.leader)).toEqual(then);
  });

  it("are due when every core has reported, or when the wait for the slowest is over", () => {
    const bench = new Bench(7);
    bench.tell([4, 7]);
    expect(bench.part.next(bench.now)).toBeNull();
    expect(bench.part.dueAt).toBe(bench.now + 100);
    bench.now -= 90;
    bench.tell([9]);
    expect(bench.part.next(bench.now)?.cores.map(({ core }) => core)).toEqual(CORES);
    expect(bench.part.dueAt).toBe(Number.POSITIVE_INFINITY);
    bench.tell([4]);
    expect(bench.part.next(bench.now)).toBeNull();
    const late = bench.part.next(bench.now + 100);
    expect(late?.cores.filter(({ heard }) => heard).map(({ core }) => core)).toEqual([4]);
  });
});
