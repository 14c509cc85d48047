/** Names beyond the limit, on several cores and over workers: a visible row has all calls of its name. */

import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { FrameMerger } from "./frame-merger.ts";
import { FrameWriter } from "./frames.ts";
import { GivenUpNames } from "./given-up-names.ts";
import { NAMES_MAX, NO_TAGS, OTHER_NAME, PHASE_TAG, UNNAMED_MAX } from "./names.ts";
import { StatsRecorder } from "./stats-recorder.ts";
import type { WorkflowStats } from "./workflow-stats.ts";

const SHAPE = { errorKinds: 3, corrected: true };
const IDLE = { users: 2, target: 3, cpuMs: 10, lagMsMax: 1 };
const STATUS_FAILED = 1;

const moment = (window: number) => ({
  measuredMs: window * 100,
  warmingUp: false,
  target: 3,
  arrivalsWaiting: 0,
});

/** A core that calls steps, checks and groups by random names, and remembers what it did. */
class Core {
  readonly recorder = new StatsRecorder(SHAPE);
  readonly #titles = new Set<string>();

  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  work(names: number, truth: Truth): void {
    for (let i = 0; i < 300; i++) {
      const name = `n${Math.floor(this.#random.float() * names)}`;
      const latency = 1 + Math.floor(this.#random.float() * 900);
      const failed = this.#random.chance(0.1);
      const step = this.recorder.step(this.recorder.stepNumber(name, "http"));
      step.record(failed ? STATUS_FAILED : -1, 200, latency, latency, -1, -1, -1, 7, 0);
      if (failed) this.#sample(this.recorder.stepNumber(name, "http"));
      truth.count("steps", name, latency);
      this.recorder.check(this.recorder.checkNumber(name), true);
      truth.count("checks", name, latency);
      this.recorder.group(this.recorder.groupNumber(name)).record(false, latency, latency);
      truth.count("groups", name, latency);
    }
  }

  #sample(step: number): void {
    const sample = { step, kind: STATUS_FAILED, status: 200, atMs: 1, call: "", text: "" };
    this.recorder.samples.add(sample);
  }

  /** A step that is named by its call, as a flow counts it. */
  unnamed(title: string): void {
    const keeps = this.#titles.has(title) || this.#titles.size < UNNAMED_MAX;
    if (keeps) this.#titles.add(title);
    const number = keeps
      ? this.recorder.stepNumber(title, "http")
      : this.recorder.giveUpStep(title, "http", NO_TAGS);
    this.recorder.step(number).record(-1, 200, 5, 5, -1, -1, -1, 0, 0);
  }
}

class Truth {
  readonly calls = new Map<string, { count: number; sum: number }>();
  all = 0;

  count(table: string, name: string, latency: number): void {
    const { count, sum } = this.calls.get(`${table} ${name}`) ?? { count: 0, sum: 0 };
    this.calls.set(`${table} ${name}`, { count: count + 1, sum: sum + latency });
    if (table === "steps") this.all++;
  }
}

/** A worker that merges its cores and forwards the result, over a network that loses frames. */
class Worker {
  readonly merger = new FrameMerger(SHAPE);
  readonly writer = new FrameWriter(this.merger.stats);
  readonly cores: readonly Core[];

  constructor(random: Random, cores: number) {
    this.cores = Array.from({ length: cores }, (_, at) => new Core(random.fork(`core ${at}`)));
    for (const at of this.cores.keys()) this.merger.attach(at);
  }

  takeAll(window: number, random: Random, isLast: boolean): void {
    for (const [at, { recorder }] of this.cores.entries()) {
      const frame = recorder.frame(moment(window), isLast);
      if (random.chance(0.3) && !isLast) continue;
      const { held, sound } = this.merger.receive(at, frame);
      expect(sound).toBe(true);
      if (random.chance(0.7)) recorder.acknowledged(held);
    }
  }
}

/** Every visible row has all calls of its name, and nothing is lost. */
function expectWholeRows(stats: WorkflowStats, truth: Truth): void {
  let shown = 0;
  let all = 0;
  for (const [number, { name }] of stats.stepNames.list.entries()) {
    const totals = stats.step(number);
    all += totals.requests;
    if (name === OTHER_NAME) continue;
    if (stats.stepNames.isFolded(number)) {
      expect(totals.requests).toBe(0);
      expect(stats.windowsOf(number).list()).toEqual([]);
      expect(stats.samples.list.some(({ step }) => step === number)).toBe(false);
      continue;
    }
    shown++;
    const { count, sum } = truth.calls.get(`steps ${name}`) ?? { count: 0, sum: 0 };
    expect(totals.requests, name).toBe(count);
    expect(totals.latency.sum, name).toBe(sum);
  }
  expect(all).toBe(truth.all);
  // Names that every core kept stay, up to the limit of the merged table.
  expect(shown).toBeGreaterThan(0);
  const other = stats.stepNames.numberOf(OTHER_NAME);
  const inWindows = stats.windowsOf(other).list();
  const calls = inWindows.reduce((sum, { content }) => sum + content.calls, 0);
  expect(calls).toBe(stats.step(other).requests);
  expect(stats.step(other).latency.count).toBe(stats.step(other).requests);
  for (const [number, { name }] of stats.checkNames.list.entries())
    if (name !== OTHER_NAME && !stats.checkNames.isFolded(number))
      expect(stats.check(number).counts[0]).toBe(truth.calls.get(`checks ${name}`)?.count);
  for (const [number, { name }] of stats.groupNames.list.entries())
    if (name !== OTHER_NAME && !stats.groupNames.isFolded(number))
      expect(stats.group(number).ok).toBe(truth.calls.get(`groups ${name}`)?.count);
}

describe("names beyond the limit", () => {
  it.each([2, 3])(
    "leave rows with all their calls, over two workers of two cores: seed %d",
    (seed) => {
      const random = new Random(`given up ${seed}`);
      const truth = new Truth();
      const workers = [0, 1].map((at) => new Worker(random.fork(`worker ${at}`), 2));
      const manager = new FrameMerger(SHAPE);
      for (const at of workers.keys()) manager.attach(at);
      const windows = 6;
      for (let window = 1; window <= windows; window++) {
        const isLast = window === windows;
        for (const [at, worker] of workers.entries()) {
          for (const core of worker.cores) {
            core.work(seed * 300, truth);
            core.recorder.seal(window, IDLE);
          }
          worker.takeAll(window, random, isLast);
          const frame = worker.writer.write(isLast);
          if (random.chance(0.3) && !isLast) continue;
          const { held, sound } = manager.receive(at, frame);
          expect(sound).toBe(true);
          if (random.chance(0.7)) worker.writer.acknowledged(held);
        }
      }
      expectWholeRows(manager.stats, truth);
    },
  );

  it("fold only rows that another core may have given up", () => {
    const cores = [new Core(new Random("a")), new Core(new Random("b"))];
    const [first, second] = cores;
    for (let i = 0; i < UNNAMED_MAX + 50; i++) {
      first?.unnamed(`GET /${i}`);
      second?.unnamed(`GET /${UNNAMED_MAX + 50 - i}`);
    }
    // Seen by one core only, and given up by none.
    const rare = first?.recorder.stepNumber("rare", "http") ?? 0;
    first?.recorder.step(rare).record(-1, 200, 5, 5, -1, -1, -1, 0, 0);
    const merger = new FrameMerger(SHAPE);
    for (const [at, { recorder }] of cores.entries()) {
      recorder.seal(1, IDLE);
      merger.receive(at, recorder.frame(moment(1), true));
    }
    const { stepNames } = merger.stats;
    const shown = stepNames.list.filter((_, number) => !stepNames.isFolded(number));
    expect(shown.map(({ name }) => name)).toContain("rare");
    // 149 titles kept by both, two seen by one core only, and "(other)".
    expect(shown.length).toBeGreaterThan(145);
    expect(shown.length).toBeLessThanOrEqual(153);
    for (const [number, { name }] of stepNames.list.entries())
      if (name.startsWith("GET") && !stepNames.isFolded(number))
        expect(merger.stats.step(number).requests, name).toBe(/^GET .(0|250)$/.test(name) ? 1 : 2);
  });

  it("of setup are counted separately from those of iterations", () => {
    const recorder = new StatsRecorder(SHAPE);
    for (let i = 0; i < NAMES_MAX; i++) recorder.stepNumber(`n${i}`, "http");
    const beside = recorder.stepNumber("beyond", "http", { [PHASE_TAG]: "setup" });
    expect(beside).not.toBe(recorder.stepNumber("beyond", "http"));
    expect(beside).toBe(recorder.stepNumber("further", "http", { [PHASE_TAG]: "setup" }));
  });
});

describe("a filter of given-up names", () => {
  it("contains every added name, and few others", () => {
    const [one, two] = [new GivenUpNames(), new GivenUpNames()];
    for (let i = 0; i < 250; i++) one.add(`GET /items/${i}`);
    for (let i = 250; i < 500; i++) two.add(`GET /items/${i}`);
    one.union(two.bytes);
    const count = (from: number, to: number): number =>
      Array.from({ length: to - from }, (_, at) => `GET /items/${from + at}`).filter((name) =>
        one.has(name),
      ).length;
    expect(count(0, 500)).toBe(500);
    expect(count(500, 10_500)).toBeLessThan(50);
    const { version } = one;
    one.union(two.bytes);
    one.add("GET /items/7");
    expect(one.version).toBe(version);
  });
});
