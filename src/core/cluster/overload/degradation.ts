/**
 * Degradation levels of a slow node: by its local health, as membership counts it, and by the lateness of its event
 * loop. The worse of the two decides. (BP-1)
 *
 *     level     health from   lag from   timeouts  probes skipped   also
 *     normal        0            0         1           none
 *     elevated      2            0.5       1.25        none          gossips less often
 *     high          4            1         1.5         25 %          smaller gossip packets
 *     severe        6            2         2           50 %          does not lead
 *     critical      7            above 4   3           all           does not lead, accepts no new work
 *
 * A worse level needs three samples in a row, a better one ten, so that a node between two levels does not flap. (BP-7)
 */

import { assert } from "../../base/assert.ts";

export const DEGRADATION_LEVELS = ["normal", "elevated", "high", "severe", "critical"] as const;
type DegradationLevel = (typeof DEGRADATION_LEVELS)[number];

/** Interval between samples; lag is measured in multiples of it. (LHM-3) */
export const LEVEL_SAMPLE_MS = 500;
const SAMPLES_UP = 3;
const SAMPLES_DOWN = 10;

/** Changes in behaviour at a level. */
export interface DegradationActions {
  /** Factor on timeouts, unless local health asks for more. (BP-2) */
  readonly timeouts: number;
  /** Share of probes that are skipped, except urgent ones. (BP-3) */
  readonly probesSkipped: number;
  /** Share of a packet that gossip may use. */
  readonly newsShare: number;
  /** Health score of this level; elections count it like membership's own. */
  readonly health: number;
  readonly takesWork: boolean;
}

export const DEGRADATION_ACTIONS: Readonly<Record<DegradationLevel, DegradationActions>> = {
  normal: { timeouts: 1, probesSkipped: 0, newsShare: 1, health: 0, takesWork: true },
  elevated: { timeouts: 1.25, probesSkipped: 0, newsShare: 1, health: 2, takesWork: true },
  high: { timeouts: 1.5, probesSkipped: 0.25, newsShare: 0.5, health: 4, takesWork: true },
  severe: { timeouts: 2, probesSkipped: 0.5, newsShare: 0.5, health: 6, takesWork: true },
  critical: { timeouts: 3, probesSkipped: 1, newsShare: 0.5, health: 7, takesWork: false },
};

/** Inclusive lower bounds of elevated, high and severe; a lag is critical above the last. */
const LAG_FROM = [0.5, 1, 2] as const;
const LAG_CRITICAL_ABOVE = 4;

interface DegradationSample {
  /** Local health: 0 is healthy. Always 0 for nodes that do not count it. */
  readonly health: number;
  /** Lateness of the event loop. */
  readonly lagMs: number;
}

interface DegradationChange {
  readonly from: DegradationLevel;
  readonly to: DegradationLevel;
}

export interface DegradationView {
  readonly level: DegradationLevel;
  /** How often each level was entered. */
  readonly entered: Readonly<Record<DegradationLevel, number>>;
}

export class Degradation {
  readonly #entered = { normal: 0, elevated: 0, high: 0, severe: 0, critical: 0 };
  #level: DegradationLevel = "normal";
  /** Samples in a row that were worse, or better. */
  #worse: DegradationLevel[] = [];
  #better: DegradationLevel[] = [];

  get level(): DegradationLevel {
    return this.#level;
  }

  get actions(): DegradationActions {
    return DEGRADATION_ACTIONS[this.#level];
  }

  /** Returns a change, or null. A change goes to the mildest level of the samples that caused it. */
  sample(sample: DegradationSample): DegradationChange | null {
    const seen = levelOf(sample);
    const order = rank(seen) - rank(this.#level);
    this.#worse = order > 0 ? [...this.#worse, seen] : [];
    this.#better = order < 0 ? [...this.#better, seen] : [];
    if (this.#worse.length >= SAMPLES_UP) return this.#enter(extreme(this.#worse, Math.min));
    if (this.#better.length >= SAMPLES_DOWN) return this.#enter(extreme(this.#better, Math.max));
    return null;
  }

  #enter(to: DegradationLevel): DegradationChange {
    const from = this.#level;
    assert(from !== to, "a level is entered from another");
    this.#level = to;
    this.#entered[to]++;
    this.#worse = [];
    this.#better = [];
    return { from, to };
  }

  view(): DegradationView {
    return { level: this.#level, entered: { ...this.#entered } };
  }
}

/** Level of one sample; anything that is not a number counts as the worst value. */
export function levelOf({ health, lagMs }: DegradationSample): DegradationLevel {
  const byHealth = DEGRADATION_LEVELS.findLastIndex(
    (level) => health >= DEGRADATION_ACTIONS[level].health,
  );
  const ratio = lagMs / LEVEL_SAMPLE_MS;
  const byLag = ratio > LAG_CRITICAL_ABOVE ? 4 : LAG_FROM.filter((from) => ratio >= from).length;
  const worst = Number.isNaN(ratio) || Number.isNaN(health) ? 4 : Math.max(byHealth, byLag);
  return DEGRADATION_LEVELS[worst] ?? "normal";
}

function rank(level: DegradationLevel): number {
  return DEGRADATION_LEVELS.indexOf(level);
}

function extreme(
  levels: readonly DegradationLevel[],
  of: (...ranks: readonly number[]) => number,
): DegradationLevel {
  return DEGRADATION_LEVELS[of(...levels.map(rank))] ?? "normal";
}

/** Log entry of a change. (BP-7) */
export function degradationLog(change: DegradationChange, lagMs: number, health = 0) {
  const level = change.to === "normal" ? ("info" as const) : ("warn" as const);
  const fields = { ...change, lagMs: Math.round(lagMs), health };
  return { kind: "log", level, event: "degradation.changed", fields } as const;
}

/** Measures lateness for a process without another measure: one timer per sample. (LHM-3) */
export class LagTimer {
  #dueAt = Number.POSITIVE_INFINITY;

  get dueAt(): number {
    return this.#dueAt;
  }

  start(now: number): void {
    this.#dueAt = now + LEVEL_SAMPLE_MS;
  }

  /** Lateness of the timer; null while it is not due. */
  take(now: number): number | null {
    if (now < this.#dueAt) return null;
    const lateMs = now - this.#dueAt;
    this.start(now);
    return lateMs;
  }
}
