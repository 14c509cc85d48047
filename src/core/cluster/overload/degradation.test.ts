import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import {
  DEGRADATION_ACTIONS,
  DEGRADATION_LEVELS,
  Degradation,
  LagTimer,
  LEVEL_SAMPLE_MS,
  levelOf,
} from "./degradation.ts";

interface Sample {
  readonly health: number;
  readonly lagMs: number;
}

/** The table of the requirement, row by row, from the worst: independent of how the machine finds its level. */
function tableLevel(health: number, ratio: number): number {
  if (health >= 7 || ratio > 4) return 4;
  if (health >= 6 || ratio >= 2) return 3;
  if (health >= 4 || ratio >= 1) return 2;
  if (health >= 2 || ratio >= 0.5) return 1;
  return 0;
}

/** Evaluates all samples since the level was entered. */
class Oracle {
  level = 0;
  changes = 0;
  #seen: number[] = [];

  sample({ health, lagMs }: Sample): void {
    this.#seen.push(tableLevel(health, lagMs / 500));
    const three = this.#seen.slice(-3);
    const ten = this.#seen.slice(-10);
    let to = this.level;
    if (three.length === 3 && three.every((one) => one > this.level)) to = Math.min(...three);
    else if (ten.length === 10 && ten.every((one) => one < this.level)) to = Math.max(...ten);
    if (to === this.level) return;
    this.level = to;
    this.changes++;
    this.#seen = [];
  }
}

const lag = (ratio: number): Sample => ({ health: 0, lagMs: ratio * LEVEL_SAMPLE_MS });

describe("the level of one sample", () => {
  it("BP-1: is the worse of health and lag, for every pair of them, lower bounds inside", () => {
    for (let health = 0; health <= 8; health++) {
      for (const ratio of [0, 0.49, 0.5, 0.99, 1, 1.99, 2, 3.99, 4, 4.01, 100]) {
        const level = levelOf({ health, lagMs: ratio * 500 });
        expect([health, ratio, level]).toEqual([
          ...[health, ratio, DEGRADATION_LEVELS[tableLevel(health, ratio)]],
        ]);
      }
    }
  });

  it("BP-1: treats anything that is not a number as the worst value", () => {
    expect(levelOf({ health: 0, lagMs: Number.NaN })).toBe("critical");
    expect(levelOf({ health: Number.NaN, lagMs: 0 })).toBe("critical");
  });

  it("BP-2, BP-3, BP-6: applies the actions of each level", () => {
    const rows = DEGRADATION_LEVELS.map((level) => {
      const { probesSkipped, takesWork, timeouts } = DEGRADATION_ACTIONS[level];
      return [level, timeouts, probesSkipped, takesWork];
    });
    expect(rows).toEqual([
      ["normal", 1, 0, true],
      ["elevated", 1.25, 0, true],
      ["high", 1.5, 0.25, true],
      ["severe", 2, 0.5, true],
      ["critical", 3, 1, false],
    ]);
  });
});

describe("changes of the level", () => {
  it("BP-7: rises after three worse samples in a row, not after two", () => {
    const levels = new Degradation();
    expect([lag(1), lag(1), lag(0), lag(1), lag(1)].map((one) => levels.sample(one))).toEqual(
      new Array(5).fill(null),
    );
    expect(levels.sample(lag(1))).toEqual({ from: "normal", to: "high" });
  });

  it("BP-7: falls after ten better samples in a row, not after nine", () => {
    const levels = new Degradation();
    for (let one = 0; one < 3; one++) levels.sample(lag(5));
    for (let one = 0; one < 9; one++) expect(levels.sample(lag(0))).toBeNull();
    expect(levels.sample(lag(5))).toBeNull();
    for (let one = 0; one < 9; one++) expect(levels.sample(lag(0))).toBeNull();
    expect(levels.sample(lag(0))).toEqual({ from: "critical", to: "normal" });
  });

  it("BP-7: counts every change by its target level", () => {
    const levels = new Degradation();
    for (const [ratio, times] of [
      [0.6, 3],
      [5, 3],
      [0, 10],
      [0.6, 3],
    ] as const)
      for (let one = 0; one < times; one++) levels.sample(lag(ratio));
    expect(levels.view()).toEqual({
      level: "elevated",
      entered: { normal: 1, elevated: 2, high: 0, severe: 0, critical: 1 },
    });
  });

  it("BP-1, BP-7: agrees with an oracle over all samples", () => {
    const random = new Random("levels");
    const ever = new Set<string>();
    for (let run = 0; run < 200; run++) {
      const [levels, oracle] = [new Degradation(), new Oracle()];
      let sample: Sample = lag(0);
      for (let step = 0; step < 200; step++) {
        // Samples mostly repeat: otherwise nothing is ever seen ten times in a row.
        if (random.float() < 0.15)
          sample = { health: random.below(9), lagMs: random.float() * random.below(2) * 3_000 };
        if (random.float() < 0.15) sample = lag(0);
        const change = levels.sample(sample);
        const before = oracle.level;
        oracle.sample(sample);
        expect(levels.level).toBe(DEGRADATION_LEVELS[oracle.level]);
        expect(change === null).toBe(before === oracle.level);
        if (change !== null) ever.add(`${change.from} ${change.to}`);
      }
      const { entered } = levels.view();
      expect(Object.values(entered).reduce((sum, one) => sum + one, 0)).toBe(oracle.changes);
    }
    // Every level changed to every other.
    expect(ever.size).toBe(20);
  });
});

it("LHM-3: measures lag as the lateness of a periodic timer", () => {
  const timer = new LagTimer();
  expect(timer.take(10_000)).toBeNull();
  timer.start(1_000);
  expect(timer.dueAt).toBe(1_500);
  expect(timer.take(1_499)).toBeNull();
  expect(timer.take(1_500)).toBe(0);
  expect(timer.take(4_000)).toBe(2_000);
  expect(timer.dueAt).toBe(4_500);
});
