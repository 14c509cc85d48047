/** Frames over a network that loses, duplicates, delays and reorders: nothing counted is lost or counted twice. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { FrameMerger } from "./frame-merger.ts";
import { FrameWriter, readFrame } from "./frames.ts";
import { cellOf, Histogram } from "./histogram.ts";
import { findMetric } from "./metrics.ts";
import { NAMES_MAX, OTHER_NAME } from "./names.ts";
import { StatsRecorder } from "./stats-recorder.ts";
import type { WorkflowStats } from "./workflow-stats.ts";

const SHAPE = { errorKinds: 3, corrected: true };
const IDLE = { users: 2, target: 3, cpuMs: 10, lagMsMax: 1 };
const STEPS = ["home", "search", "pay", "list"];

const moment = (window: number) => ({
  measuredMs: window * 100,
  warmingUp: false,
  target: 3,
  arrivalsWaiting: 1,
});

/** Ground truth, kept apart from all of our counting. */
class Truth {
  readonly requests = new Map<string, number>();
  readonly latencies = new Map<string, Histogram>();
  /** Calls, and cells with counts, by step and window. */
  readonly windows = new Map<string, { calls: number; cells: Map<number, number> }>();
  iterations = 0;
  passed = 0;
  orders = 0;

  call(step: string, window: number, latency: number): void {
    this.requests.set(step, (this.requests.get(step) ?? 0) + 1);
    const histogram = this.latencies.get(step) ?? new Histogram();
    histogram.record(latency);
    this.latencies.set(step, histogram);
    const key = `${step} ${window * 100}`;
    const held = this.windows.get(key) ?? { calls: 0, cells: new Map() };
    held.calls++;
    const cell = cellOf(latency);
    held.cells.set(cell, (held.cells.get(cell) ?? 0) + 1);
    this.windows.set(key, held);
  }
}

class FakeCore {
  readonly recorder = new StatsRecorder(SHAPE);
  readonly #random: Random;
  readonly #truth: Truth;

  constructor(random: Random, truth: Truth) {
    this.#random = random;
    this.#truth = truth;
  }

  work(): void {
    const { recorder } = this;
    for (let i = this.#random.below(6); i > 0; i--) {
      const step = STEPS[this.#random.below(STEPS.length)] ?? "home";
      // Most cells rare, some common, as in reality.
      const latency = this.#random.below(this.#random.chance(0.5) ? 2_000 : 2_000_000);
      const kind = this.#random.below(4) - 1;
      recorder
        .step(recorder.stepNumber(step, "http"))
        .record(kind, 200, latency, latency, -1, -1, -1, 3, 4);
      this.#truth.call(step, recorder.window, latency);
    }
    recorder.counts.completed++;
    this.#truth.iterations++;
    recorder.check(recorder.checkNumber("fine"), true);
    this.#truth.passed++;
    recorder.metrics.series("orders", "counter").add(2, 0);
    this.#truth.orders += 2;
  }
}

type Message = { readonly to: () => void };

/** Three cores, two workers that merge them, one manager; every message may be lost, duplicated or delayed. */
class World {
  readonly truth = new Truth();
  readonly #random: Random;
  readonly #cores: FakeCore[];
  readonly #workers = [new FrameMerger(SHAPE), new FrameMerger(SHAPE)];
  readonly #writers = this.#workers.map(({ stats }) => new FrameWriter(stats));
  #network: Message[] = [];
  #window = 0;
  manager = new FrameMerger(SHAPE);

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#cores = [0, 1, 2].map((at) => new FakeCore(this.#random.fork(`core ${at}`), this.truth));
    for (const at of this.#cores.keys()) this.#workerOf(at).attach(at);
    this.#attachWorkers();
  }

  #attachWorkers(): void {
    for (const at of this.#workers.keys()) this.manager.attach(at);
  }

  #workerOf(core: number): FrameMerger {
    return this.#workers[core === 0 ? 0 : 1] as FrameMerger;
  }

  /** Less than five seconds of windows: no part is left behind as stalled. */
  run(windows: number): void {
    for (; this.#window < windows; this.#window++) {
      for (const core of this.#cores) core.work();
      for (const [at, core] of this.#cores.entries()) {
        core.recorder.seal(this.#window + 1, IDLE);
        if (this.#random.chance(0.8)) this.#sendCore(at, core, false);
      }
      for (const at of this.#workers.keys())
        if (this.#random.chance(0.8)) this.#sendWorker(at, false);
      if (this.#random.chance(0.03)) this.#replaceManager();
      this.#deliverSome();
    }
  }

  #sendCore(at: number, { recorder }: FakeCore, last: boolean): void {
    const bytes = recorder.frame(moment(this.#window + 1), last);
    this.#send(() => {
      const { held } = this.#workerOf(at).receive(at, bytes);
      this.#send(() => recorder.acknowledged(held));
    });
  }

  #sendWorker(at: number, last: boolean): void {
    const bytes = this.#writers[at]?.write(last) ?? new Uint8Array();
    const { manager } = this;
    this.#send(() => {
      const { held } = this.manager.receive(at, bytes);
      if (this.manager === manager) this.#send(() => this.#writers[at]?.acknowledged(held));
    });
  }

  /** Another leader without any frame: it says so when the first one arrives. */
  #replaceManager(): void {
    this.manager = new FrameMerger(SHAPE);
    this.#attachWorkers();
  }

  #send(to: () => void): void {
    this.#network.push({ to });
    if (this.#random.chance(0.15)) this.#network.push({ to });
  }

  #deliverSome(): void {
    for (let i = this.#random.below(12); i > 0 && this.#network.length > 0; i--) {
      const at = this.#random.below(this.#network.length);
      const [message] = this.#network.splice(at, 1);
      if (this.#random.chance(0.7)) message?.to();
    }
  }

  /** Last frames arrive; all others in flight come after them. */
  end(): void {
    const late = this.#network;
    this.#network = [];
    for (const [at, core] of this.#cores.entries()) this.#sendCore(at, core, true);
    this.#deliverAll();
    for (const at of this.#cores.keys()) this.#workerOf(at).close(at);
    for (const at of this.#workers.keys()) this.#sendWorker(at, true);
    this.#deliverAll();
    this.#network = late;
    this.#deliverAll();
    for (const at of this.#workers.keys()) this.manager.close(at);
  }

  #deliverAll(): void {
    while (this.#network.length > 0) this.#network.shift()?.to();
  }
}

function windowsOf(stats: WorkflowStats): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [at, { name }] of stats.stepNames.list.entries()) {
    for (const { content, startMs } of stats.windowsOf(at).list()) {
      const { calls, latency } = content;
      const cells = new Map([...latency.cells()].map((cell, i) => [cell, latency.counts()[i]]));
      found.set(`${name} ${startMs}`, { calls, cells });
    }
  }
  return found;
}

function cellsOf(histogram: Histogram): [number, number][] {
  const cells: [number, number][] = [];
  histogram.forEachCell((cell, count) => cells.push([cell, count]));
  return cells;
}

describe("frames over a bad network", () => {
  it("produce exactly the recorded totals and windows, merged twice on the way (MET-2)", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 45 }), (seed, windows) => {
        const world = new World(seed);
        world.run(windows);
        world.end();
        const { stats } = world.manager;
        const { truth } = world;
        for (const [at, { name }] of stats.stepNames.list.entries()) {
          const totals = stats.step(at);
          expect(totals.requests).toBe(truth.requests.get(name) ?? 0);
          const expected = truth.latencies.get(name) ?? new Histogram();
          expect(cellsOf(totals.latency)).toEqual(cellsOf(expected));
          expect([totals.latency.min, totals.latency.max]).toEqual([expected.min, expected.max]);
          expect(totals.latency.sum).toBeCloseTo(expected.sum, 3);
        }
        expect(windowsOf(stats)).toEqual(truth.windows);
        expect(stats.runCount("completed")).toBe(truth.iterations);
        expect(stats.check(0).counts[0]).toBe(truth.passed);
        expect(findMetric([stats.metrics], "orders")?.count).toBe(truth.orders);
        const load = stats.load.list().map(({ content }) => content.userMs);
        expect(load).toEqual(new Array(windows).fill(3 * 2 * 100));
        expect(stats.horizonMs).toBe(windows * 100);
        expect(stats.moment).toEqual({ ...moment(windows + 1), target: 0, arrivalsWaiting: 3 });
      }),
      { numRuns: 40 },
    );
  });

  it("repeat the content of a lost frame in the next one", () => {
    const core = new StatsRecorder(SHAPE);
    const receiver = new FrameMerger(SHAPE);
    const home = core.step(core.stepNumber("home", "http"));
    const send = (window: number, arrives: boolean): void => {
      core.seal(window, IDLE);
      const bytes = core.frame(moment(window), false);
      if (arrives) core.acknowledged(receiver.receive(0, bytes).held);
    };
    for (let i = 0; i < 1_000; i++) home.record(-1, 200, 1_000, 1_000, -1, -1, -1, 0, 0);
    send(1, true);
    // Forty slow calls, in cells that nothing touches again.
    for (let i = 0; i < 40; i++) home.record(-1, 200, 900_000 + i * 999, 1_000, -1, -1, -1, 0, 0);
    send(2, false);
    home.record(-1, 200, 1_000, 1_000, -1, -1, -1, 0, 0);
    send(3, true);
    const { latency, requests } = receiver.stats.step(0);
    expect([requests, latency.count]).toEqual([1_041, 1_041]);
    expect(latency.quantile(0.99)).toBeGreaterThan(900_000);
  });

  it("carry only what changed after the acknowledged one", () => {
    const core = new StatsRecorder(SHAPE);
    const receiver = new FrameMerger(SHAPE);
    const sizes: number[] = [];
    for (let window = 1; window <= 20; window++) {
      for (let i = 0; i < 200; i++)
        core
          .step(core.stepNumber("home", "http"))
          .record(-1, 200, window * 10_000 + 40 * i, 1_000, -1, -1, -1, 0, 0);
      core.seal(window, IDLE);
      const bytes = core.frame(moment(window), false);
      sizes.push(bytes.length);
      core.acknowledged(receiver.receive(0, bytes).held);
    }
    expect(Math.max(...sizes)).toBeLessThan(2 * (sizes[0] ?? 0));
    expect(core.frame(moment(21), true).length).toBeGreaterThan(5 * (sizes[0] ?? 0));
  });

  it("are rejected when they follow no retained frame, with the retained number", () => {
    const core = new StatsRecorder(SHAPE);
    const [first, second] = [new FrameMerger(SHAPE), new FrameMerger(SHAPE)];
    core.step(core.stepNumber("home", "http")).record(-1, 200, 1, 1, -1, -1, -1, 0, 0);
    core.seal(1, IDLE);
    core.acknowledged(first.receive(0, core.frame(moment(1), false)).held);
    const against = core.frame(moment(1), false);
    expect(second.receive(0, against)).toEqual({ held: 0, sound: true });
    expect(second.stats.stepNames.list).toEqual([]);
    core.acknowledged(0);
    expect(second.receive(0, core.frame(moment(1), false))).toEqual({ held: 3, sound: true });
    expect(second.stats.step(0).requests).toBe(1);
    second.close(0);
    core.counts.completed = 9;
    expect(second.receive(0, core.frame(moment(1), true)).held).toBe(3);
    expect(second.stats.runCount("completed")).toBe(0);
  });

  it("count names beyond the limit as one, per core and for all together", () => {
    const merger = new FrameMerger(SHAPE);
    for (const [core, prefix] of ["item", "thing"].entries()) {
      const recorder = new StatsRecorder(SHAPE);
      for (let i = 0; i < NAMES_MAX + 20; i++)
        recorder
          .step(recorder.stepNumber(`${prefix}-${i}`, "http"))
          .record(-1, 200, 5, 5, -1, -1, -1, 0, 0);
      recorder.seal(1, IDLE);
      expect(merger.receive(core, recorder.frame(moment(1), false)).sound).toBe(true);
      expect(merger.stats.stepNames.overflowed).toBe(true);
    }
    const { stepNames } = merger.stats;
    expect(stepNames.list).toHaveLength(NAMES_MAX + 1);
    const other = stepNames.list.findIndex(({ name }) => name === OTHER_NAME);
    expect(merger.stats.step(other).requests).toBe(20 + NAMES_MAX + 20);
  });

  it("do not wait for a core that stands still, nor for one that is gone", () => {
    const merger = new FrameMerger(SHAPE);
    const [one, two] = [new StatsRecorder(SHAPE), new StatsRecorder(SHAPE)];
    for (const core of [0, 1]) merger.attach(core);
    one.seal(30, IDLE);
    merger.receive(0, one.frame(moment(30), false));
    expect(merger.stats.horizonMs).toBe(0);
    two.seal(10, IDLE);
    merger.receive(1, two.frame(moment(10), false));
    expect(merger.stats.horizonMs).toBe(1_000);
    one.seal(100, IDLE);
    merger.receive(0, one.frame(moment(100), true));
    expect(merger.stats.horizonMs).toBe(5_000);
    merger.close(1);
    expect(merger.stats.horizonMs).toBe(10_000);
  });

  it("are rejected without effect when damaged, and arbitrary bytes do no harm", () => {
    const recorder = new StatsRecorder(SHAPE);
    recorder.step(recorder.stepNumber("home", "http")).record(0, 200, 9, 9, 1, 1, 1, 0, 0);
    recorder.metrics.series("cart", "trend", { shop: "a" }).add(3, 0);
    recorder.group(recorder.groupNumber("g")).record(false, 1, 1);
    recorder.seal(1, IDLE);
    const sound = recorder.frame(moment(1), false);
    expect(readFrame(sound, SHAPE)).toBeDefined();
    expect(readFrame(sound, { ...SHAPE, corrected: false })).toBeUndefined();
    fc.assert(
      fc.property(fc.nat(sound.length - 1), fc.nat(255), (at, byte) => {
        const merger = new FrameMerger(SHAPE);
        expect(merger.receive(0, sound.slice(0, at))).toEqual({ held: 0, sound: false });
        expect(merger.stats.stepNames.list).toEqual([]);
        const flipped = sound.slice();
        flipped[at] = byte;
        merger.receive(0, flipped);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(new FrameMerger(SHAPE).receive(0, bytes).sound).toBe(false);
      }),
    );
  });
});

describe("sixteen executors with different latencies", () => {
  it("merge to the percentiles of all raw samples, within 0.1 %", () => {
    const random = new Random("sixteen");
    const merger = new FrameMerger(SHAPE);
    const raw: number[] = [];
    for (let executor = 0; executor < 16; executor++) {
      const recorder = new StatsRecorder(SHAPE);
      const step = recorder.step(recorder.stepNumber("home", "http"));
      const own = random.fork(`executor ${executor}`);
      for (let i = 1; i <= 20_000; i++) {
        const us = sample(own, executor);
        raw.push(us);
        step.record(-1, 200, us, us / 2, -1, -1, -1, 1, 1);
        if (i % 2_000 > 0) continue;
        recorder.seal(i / 2_000, IDLE);
        recorder.acknowledged(merger.receive(executor, recorder.frame(moment(1), false)).held);
      }
    }
    raw.sort((a, b) => a - b);
    const { latency, requests } = merger.stats.step(0);
    expect(requests).toBe(raw.length);
    for (const fraction of [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999]) {
      const exact = raw[Math.ceil(fraction * raw.length) - 1] ?? 0;
      expect(Math.abs(latency.quantile(fraction) / exact - 1)).toBeLessThan(0.001);
    }
    expect([latency.min, latency.max]).toEqual([raw[0], raw.at(-1)]);
  });
});

/** Uniform, exponential, bimodal, heavy tail: in turn, around 1 to 16 ms. */
function sample(random: Random, executor: number): number {
  const scale = 1_000 * (executor + 1);
  switch (executor % 4) {
    case 0:
      return Math.floor(scale * (0.5 + random.float()));
    case 1:
      return Math.floor(1_000 - scale * Math.log(1 - random.float()));
    case 2:
      return Math.floor(scale * (random.chance(0.5) ? 1 : 8) * (0.9 + 0.2 * random.float()));
    default:
      return Math.floor(scale / (1 - random.float()) ** 0.5);
  }
}

describe("a slow receiver", () => {
  /** Ten ticks a second; `holds`: the acknowledgement of the receiver after each. */
  function framesSent(ticks: number, holds: (sent: number) => number | null): number[] {
    const recorder = new StatsRecorder(SHAPE);
    const sent: number[] = [];
    for (let tick = 0; tick < ticks; tick++) {
      if (!recorder.isFrameDue()) continue;
      recorder.frame(moment(tick), false);
      sent.push(tick);
      const held = holds(sent.length);
      if (held !== null) recorder.acknowledged(held);
    }
    return sent;
  }

  it("gets one frame a second instead of ten, which would grow while they wait", () => {
    expect(framesSent(100, (sent) => sent)).toHaveLength(100);
    expect(framesSent(100, (sent) => Math.max(0, sent - 5))).toHaveLength(100);
    const silent = framesSent(111, () => null);
    expect(silent.slice(0, 12)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20]);
    expect(silent).toHaveLength(21);
  });

  it("gets ten again when it has caught up, and when it retains nothing but responds", () => {
    const caughtUp = framesSent(60, (sent) => (sent < 13 ? null : sent));
    expect(caughtUp.slice(-5)).toEqual([55, 56, 57, 58, 59]);
    const another = framesSent(60, (sent) => (sent < 13 ? null : 0));
    expect(another.slice(-5)).toEqual([55, 56, 57, 58, 59]);
  });
});
