/**
 * Health of nodes as seen by another one: when each was last seen, whether it accepts work and whether its work
 * advances; decides about new work for each. When more than half of three or more fail at once, the observer itself is
 * more likely to be cut off, and evicts none. (AD-19.30 to AD-19.33)
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

/** Interval over which a node must have advanced. (AD-19, numbers) */
export const WATCH_MS = 10_000;
/** Maximum standstill before a node is given up. */
const STUCK_MS_MAX = 30_000;

/** Work counters of a node since its start. */
interface Work {
  /** Work assigned to it. */
  readonly taken: number;
  readonly done: number;
  /** Work that it could do now and has not done. */
  readonly open: number;
}

interface Watched {
  readonly name: string;
  lastSeenAt: number;
  misses: number;
  ready: boolean;
  /** Reports nothing about itself, and is live while it is connected. */
  isMute: boolean;
  /** Counters at the start of the present interval. */
  since: { readonly at: number; readonly work: Work } | null;
  band: ProgressBand;
  stuckSince: number | null;
}

export interface NodeWatchView {
  readonly name: string;
  readonly decision: HealthDecision;
  readonly label: HealthLabel;
  /** Earlier decisions, the latest last; survives reconnects. */
  readonly history: readonly DecisionChange[];
}

export class NodeWatch {
  readonly #known = new Map<string, Watched>();
  /** Nodes that were evicted and have not recovered since. */
  readonly #out = new Set<string>();
  /** Nodes retained only because too many failed at once. */
  readonly #kept = new Set<string>();
  readonly #history = new DecisionHistory();
  evicted = 0;
  /** Number of nodes retained because most failed at once. (AD-19.33) */
  held = 0;

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** Starts judging a node afresh. `isMute`: until its first report. */
  add(name: string, now: number, isMute = false): void {
    this.#forgive(name);
    this.#known.set(name, {
      ...{ name, lastSeenAt: now, misses: 0, ready: true, isMute },
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
    known.lastSeenAt = now;
    known.misses = 0;
  }

  missed(name: string): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.misses++;
  }

  /** Records whether the node accepts work. */
  mark(name: string, ready: boolean): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.ready = ready;
  }

  /** Records a report of the node. */
  report(name: string, ready: boolean, work: Work, now: number): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    this.heard(name, now);
    known.isMute = false;
    known.ready = ready;
    measure(known, work, now);
  }

  #signals({ band, lastSeenAt, isMute, misses, ready, stuckSince }: Watched, now: number) {
    return {
      live: isLive(isMute ? 0 : now - lastSeenAt, misses),
      ...{ ready, progress: band },
      isOverdue: stuckSince !== null && now - stuckSince >= STUCK_MS_MAX,
    } satisfies HealthSignals;
  }

  signals(now: number): readonly HealthSignals[] {
    return [...this.#known.values()].map((one) => this.#signals(one, now));
  }

  /** Decision as if no other node failed. */
  #judged(known: Watched, now: number): HealthDecision {
    return decisionOf(this.#signals(known, now));
  }

  /** An unknown node gets work like any other. */
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

  /** Nodes already given up do not count. (AD-19.32) */
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
  // Counters restarted: it is a new process.
  if (since === null || work.taken < since.work.taken) return;
  const done = work.done - since.work.done;
  // Work that could have been done during the whole interval; later work may just have arrived.
  const expected = Math.min(since.work.open, work.open + done);
  known.band = progressOf(expected > 0, done, expected);
  known.stuckSince = known.band === "stuck" ? (known.stuckSince ?? now) : null;
}
