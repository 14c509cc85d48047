/**
 * What a node that is slow itself does less of, in levels: by its local health, as membership counts it, and by how
 * late its event loop comes to its timers. The worse of the two decides. (BP-1)
 *
 *     level     health from   lag from    times    probes skipped   besides
 *     normal        0            0         1           none
 *     elevated      2            0.5       1.25        none          gossips less often
 *     high          4            1         1.5         25 %          smaller packets of news
 *     severe        6            2         2           50 %          does not lead
 *     critical      7            above 4   3           all           does not lead, takes no new work
 *
 * A worse level must be seen three times in a row, a better one ten times: a node on the border of two does not go to
 * and fro. (BP-7)
 */

import { assert } from "../../base/assert.ts";

export const DEGRADATION_LEVELS = ["normal", "elevated", "high", "severe", "critical"] as const;
type DegradationLevel = (typeof DEGRADATION_LEVELS)[number];

/** How often a node looks at itself; lag is told as a multiple of this. (LHM-3) */
export const LEVEL_SAMPLE_MS = 500;
const SAMPLES_UP = 3;
const SAMPLES_DOWN = 10;

/** What a node does differently. */
export interface DegradationActions {
  /** Times of waiting are multiplied by it, unless local health asks for more. (BP-2) */
  readonly timeouts: number;
  /** Share of the probes that are left out, except those that matter now. (BP-3) */
  readonly probesSkipped: number;
  /** Share of a packet's room that news may take. */
  readonly newsShare: number;
  /** Health that this level stands for: who elects counts it like membership's own. */
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

/** Lower bounds of elevated, high and severe, on which a value is inside; a lag is critical above the last. */
const LAG_FROM = [0.5, 1, 2] as const;
const LAG_CRITICAL_ABOVE = 4;

interface DegradationSample {
  /** Local health: 0 is well. For who counts none it is always 0. */
  readonly health: number;
  /** How late the event loop was. */
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

  /** Null while nothing changes. A change goes to the mildest level of the samples that brought it about. */
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

/** By one sample; what is no number is as bad as can be. */
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

/** What is said of a change, by whoever it happens to. (BP-7) */
export function degradationLog(change: DegradationChange, lagMs: number, health = 0) {
  const level = change.to === "normal" ? ("info" as const) : ("warn" as const);
  const fields = { ...change, lagMs: Math.round(lagMs), health };
  return { kind: "log", level, event: "degradation.changed", fields } as const;
}

/** How late a process that has no other measure is: a timer of its own for every sample. (LHM-3) */
export class LagTimer {
  #dueAt = Number.POSITIVE_INFINITY;

  get dueAt(): number {
    return this.#dueAt;
  }

  start(now: number): void {
    this.#dueAt = now + LEVEL_SAMPLE_MS;
  }

  /** How late it is served; null while it is not due. */
  take(now: number): number | null {
    if (now < this.#dueAt) return null;
    const lateMs = now - this.#dueAt;
    this.start(now);
    return lateMs;
  }
}
