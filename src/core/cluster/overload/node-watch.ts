/**
 * Nodes as another one watches them: when each was heard last, whether it takes work, and whether what could be done
 * by it is; and what becomes of new work for each. When more than half of three or more fail at once, whoever watches
 * is more likely to be cut off itself, and evicts none. (AD-19.30 to AD-19.33)
 */

import type { HealthLabel } from "../views.ts";
import { type DecisionChange, DecisionHistory } from "./decision-history.ts";
import {
  decisionOf,
  type HealthDecision,
  type HealthSignals,
  isLive,
  isSystemic,
  labelOf,
  type ProgressBand,
  progressOf,
} from "./health.ts";

/** Over what time a node must have advanced. (AD-19, numbers) */
export const WATCH_MS = 10_000;
/** One that stands still for so long is not waited for. */
const STUCK_MS_MAX = 30_000;

/** What a node says that it has done since it started. */
interface Work {
  /** What it was given. */
  readonly taken: number;
  readonly done: number;
  /** What it could do now, and has not. */
  readonly open: number;
}

interface Watched {
  readonly name: string;
  heardAt: number;
  misses: number;
  ready: boolean;
  /** It tells nothing of itself, and is live as long as it is connected. */
  isMute: boolean;
  /** What it said when the present interval began. */
  since: { readonly at: number; readonly work: Work } | null;
  band: ProgressBand;
  stuckSince: number | null;
}

export interface NodeWatchView {
  readonly name: string;
  readonly decision: HealthDecision;
  readonly label: HealthLabel;
  /** What was decided before, the latest last; also of connections before. */
  readonly history: readonly DecisionChange[];
}

export class NodeWatch {
  readonly #known = new Map<string, Watched>();
  /** Those that were evicted and are not well since. */
  readonly #out = new Set<string>();
  /** Those that would be evicted, were they not so many. */
  readonly #kept = new Set<string>();
  readonly #history = new DecisionHistory();
  evicted = 0;
  /** How often one was not evicted since most failed at once. (AD-19.33) */
  held = 0;

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** It is judged anew. `isMute`: until it tells something. */
  add(name: string, now: number, isMute = false): void {
    this.#forgive(name);
    this.#known.set(name, {
      ...{ name, heardAt: now, misses: 0, ready: true, isMute },
      ...{ since: null, band: "idle", stuckSince: null },
    });
  }

  remove(name: string): void {
    this.#known.delete(name);
    this.#forgive(name);
  }

  #forgive(name: string): void {
    this.#out.delete(name);
    this.#kept.delete(name);
  }

  heard(name: string, now: number): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    known.heardAt = now;
    known.misses = 0;
  }

  missed(name: string): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.misses++;
  }

  /** It takes work, or does not. */
  mark(name: string, ready: boolean): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.ready = ready;
  }

  /** What it says of itself. */
  told(name: string, ready: boolean, work: Work, now: number): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    this.heard(name, now);
    known.isMute = false;
    known.ready = ready;
    measure(known, work, now);
  }

  #signals({ band, heardAt, isMute, misses, ready, stuckSince }: Watched, now: number) {
    return {
      live: isLive(isMute ? 0 : now - heardAt, misses),
      ...{ ready, progress: band },
      isOverdue: stuckSince !== null && now - stuckSince >= STUCK_MS_MAX,
    } satisfies HealthSignals;
  }

  signals(now: number): readonly HealthSignals[] {
    return [...this.#known.values()].map((one) => this.#signals(one, now));
  }

  /** As it would be if it were the only one that fails. */
  #judged(known: Watched, now: number): HealthDecision {
    return decisionOf(this.#signals(known, now));
  }

  /** One that nobody knows gets work like any other. */
  decision(name: string, now: number): HealthDecision {
    const known = this.#known.get(name);
    if (known === undefined) return "route";
    const decision = this.#decide(known, now);
    this.#history.note(name, decision, labelOf(this.#signals(known, now)), now);
    return decision;
  }

  #decide(known: Watched, now: number): HealthDecision {
    const { name } = known;
    const judged = this.#judged(known, now);
    if (judged !== "evict") this.#forgive(name);
    if (judged !== "evict" || this.#out.has(name)) return judged;
    if (this.#isSystemic(now)) {
      if (!this.#kept.has(name)) this.held++;
      this.#kept.add(name);
      return "drain";
    }
    this.#kept.delete(name);
    this.#out.add(name);
    this.evicted++;
    return "evict";
  }

  /** Those that were given up count no more. (AD-19.32) */
  #isSystemic(now: number): boolean {
    const tracked = [...this.#known.values()].filter(({ name }) => !this.#out.has(name));
    const failing = tracked.filter((one) => this.#judged(one, now) === "evict");
    return isSystemic(failing.length, tracked.length);
  }

  views(now: number): readonly NodeWatchView[] {
    const isHeld = this.#isSystemic(now);
    return [...this.#known.values()].map((known) => {
      const judged = this.#judged(known, now);
      const isKept = judged === "evict" && isHeld && !this.#out.has(known.name);
      const label = labelOf(this.#signals(known, now));
      const decision = isKept ? "drain" : judged;
      return { name: known.name, decision, label, history: this.#history.of(known.name, now) };
    });
  }
}

function measure(known: Watched, work: Work, now: number): void {
  const { since } = known;
  if (since !== null && now - since.at < WATCH_MS) return;
  known.since = { at: now, work };
  // Its process is a new one, and counts from nothing.
  if (since === null || work.taken < since.work.taken) return;
  const done = work.done - since.work.done;
  // What could have been done all the time; what came meanwhile may just have come.
  const expected = Math.min(since.work.open, work.open + done);
  known.band = progressOf(expected > 0, done, expected);
  known.stuckSince = known.band === "stuck" ? (known.stuckSince ?? now) : null;
}
