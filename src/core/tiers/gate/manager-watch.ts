/**
 * How the managers of one datacenter are, as this gate sees them, and what becomes of new work for each: whether it
 * answers, whether it takes jobs, and whether jobs that could begin do. (AD-19.14 to AD-19.18)
 *
 *     route         asked like any other
 *     investigate   asked where no other is to be routed to
 *     drain         given no new jobs; asked about those that it has
 *     evict         asked nothing but whether it is there, until it answers
 *
 * When more than half of three or more fail at once this gate itself is more likely to be cut off, and evicts none.
 */

import type { ManagerHealth } from "../gate-messages.ts";
import {
  decisionOf,
  type HealthDecision,
  type HealthSignals,
  isLive,
  isSystemic,
  labelOf,
  type ProgressBand,
  progressOf,
} from "../pressure/health.ts";
import type { HealthLabel } from "../views.ts";

/** How often one that has said nothing is asked, and over what time it must have advanced. (AD-19, numbers) */
export const WATCH_MS = 10_000;
/** One that stands still for so long is not waited for. */
const STUCK_MS_MAX = 30_000;

interface Known {
  readonly name: string;
  /** When it was connected, or answered last. */
  heardAt: number;
  askedAt: number;
  misses: number;
  /** Null: it has told nothing of itself. */
  told: ManagerHealth | null;
  workers: number;
  /** What it told when the present interval began. */
  since: { readonly at: number; readonly told: ManagerHealth } | null;
  band: ProgressBand;
  stuckSince: number | null;
}

export interface ManagerWatchView {
  readonly manager: string;
  readonly decision: HealthDecision;
  readonly label: HealthLabel;
}

export class ManagerWatch {
  readonly #known = new Map<string, Known>();
  /** Those that were evicted and have not answered since. */
  readonly #out = new Set<string>();
  evicted = 0;
  /** How often one was not evicted since most failed at once. (AD-19.33) */
  held = 0;

  /** Connected again, it is judged anew. */
  up(manager: string, now: number): void {
    this.#out.delete(manager);
    this.#known.set(manager, {
      ...{ name: manager, heardAt: now, askedAt: Number.NEGATIVE_INFINITY, misses: 0, told: null },
      ...{ workers: 0, since: null, band: "idle", stuckSince: null },
    });
  }

  down(manager: string): void {
    this.#known.delete(manager);
    this.#out.delete(manager);
  }

  /** It was asked something. */
  asked(manager: string, now: number): void {
    const known = this.#known.get(manager);
    if (known !== undefined) known.askedAt = now;
  }

  missed(manager: string): void {
    const known = this.#known.get(manager);
    if (known !== undefined) known.misses++;
  }

  /** `told`: what it says of itself, in an answer that says it. */
  heard(
    manager: string,
    told: { readonly health: ManagerHealth; readonly workers: number } | null,
    now: number,
  ): void {
    const known = this.#known.get(manager);
    if (known === undefined) return;
    known.heardAt = now;
    known.misses = 0;
    if (told === null) return;
    known.told = told.health;
    known.workers = told.workers;
    this.#measure(known, told.health, now);
  }

  #measure(known: Known, told: ManagerHealth, now: number): void {
    const { since } = known;
    if (since !== null && now - since.at < WATCH_MS) return;
    known.since = { at: now, told };
    // Its process is a new one, and counts from nothing.
    if (since === null || told.accepted < since.told.accepted) return;
    const dispatched = told.dispatched - since.told.dispatched;
    // What could have begun all the time; jobs that came meanwhile may just have come.
    const expected = Math.min(since.told.dispatchable, told.dispatchable + dispatched);
    known.band = progressOf(expected > 0, dispatched, expected);
    known.stuckSince = known.band === "stuck" ? (known.stuckSince ?? now) : null;
  }

  /** Those that are to be asked whether they are there: nobody has heard of them for long. */
  due(now: number): readonly string[] {
    return [...this.#known.values()]
      .filter(({ askedAt }) => now - askedAt >= WATCH_MS)
      .map(({ name }) => name);
  }

  nextDeadline(): number {
    const times = [...this.#known.values()].map(({ askedAt }) => askedAt + WATCH_MS);
    return Math.min(Number.POSITIVE_INFINITY, ...times);
  }

  #signals(
    { heardAt, misses, stuckSince, band, told, workers }: Known,
    now: number,
  ): HealthSignals {
    return {
      live: isLive(now - heardAt, misses),
      ready: told === null || (told.hasQuorum && told.accepting && workers > 0),
      progress: band,
      isOverdue: stuckSince !== null && now - stuckSince >= STUCK_MS_MAX,
    };
  }

  /** As it would be if it were the only one that fails. */
  #judged(known: Known, now: number): HealthDecision {
    return decisionOf(this.#signals(known, now));
  }

  /** One that nobody knows is asked like any other. */
  decision(manager: string, now: number): HealthDecision {
    const known = this.#known.get(manager);
    if (known === undefined) return "route";
    const judged = this.#judged(known, now);
    if (judged !== "evict") this.#out.delete(manager);
    if (judged !== "evict" || this.#out.has(manager)) return judged;
    if (this.#isSystemic(now)) {
      this.held++;
      return "drain";
    }
    this.#out.add(manager);
    this.evicted++;
    return "evict";
  }

  /** Those that were given up count no more. (AD-19.32) */
  #isSystemic(now: number): boolean {
    const tracked = [...this.#known.values()].filter(({ name }) => !this.#out.has(name));
    const failing = tracked.filter((one) => this.#judged(one, now) === "evict");
    return isSystemic(failing.length, tracked.length);
  }

  /** The datacenter is not well: most of them take no jobs, or one stands still. (AD-19.18) */
  isDegraded(now: number): boolean {
    const signals = [...this.#known.values()].map((one) => this.#signals(one, now));
    const unready = signals.filter(({ ready }) => !ready).length;
    return unready > signals.length / 2 || signals.some(({ progress }) => progress === "stuck");
  }

  views(now: number): readonly ManagerWatchView[] {
    const isHeld = this.#isSystemic(now);
    return [...this.#known.values()].map((known) => {
      const judged = this.#judged(known, now);
      const isKept = judged === "evict" && isHeld && !this.#out.has(known.name);
      const label = labelOf(this.#signals(known, now));
      return { manager: known.name, decision: isKept ? "drain" : judged, label };
    });
  }
}
