/**
 * Order in which datacenters are offered a job: by health first, then by distance, load and how well the
 * distance is known. The selected datacenter is kept for a while, so that work does not oscillate. (AD-36)
 *
 *   first decision ──▶ selected ──┬─ worse health, cannot accept the job, or much worse score ───▶ another at once
 *                         ▲       ├─ hold-down over, and another is clearly better ───────────────▶ another
 *                         └───────┴─ otherwise it stays
 *
 * A failed dispatch adds a temporary penalty. While no distance is known, free cores decide.
 */

import type { Distance } from "./round-trips.ts";
import { RouteCounters } from "./route-counters.ts";

/** Healths by preference. A datacenter is never asked before all of better health. (AD-36.6) */
export const HEALTHS = ["healthy", "busy", "degraded"] as const;
type Health = (typeof HEALTHS)[number];

export interface Candidate {
  readonly name: string;
  readonly health: Health;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  readonly managers: number;
  /** Unreachable managers. */
  readonly managersAway: number;
  readonly distance: Distance;
}

interface RouterConfig {
  readonly utilisationWeight: number;
  readonly queueWeight: number;
  readonly awayWeight: number;
  /** Queue length at which the queue term reaches half its weight. */
  readonly queueHalf: number;
  readonly loadMax: number;
  readonly qualityWeight: number;
  /** Score factor of a preferred datacenter. */
  readonly preference: number;
  readonly holdMs: number;
  /** Highest ratio of another's score to the current one's that allows a switch. */
  readonly improvement: number;
  /** Tolerated growth of the selected one's score since selection. Exceeding it for `degradedMs` forces a switch. */
  readonly degradation: number;
  readonly degradedMs: number;
  readonly coolDownMs: number;
  readonly coolDownPenalty: number;
}

export const ROUTER_DEFAULTS: RouterConfig = {
  utilisationWeight: 2,
  queueWeight: 1,
  awayWeight: 3,
  queueHalf: 10,
  loadMax: 5,
  qualityWeight: 0.5,
  preference: 0.8,
  holdMs: 30_000,
  improvement: 0.8,
  degradation: 1.5,
  degradedMs: 10_000,
  coolDownMs: 120_000,
  coolDownPenalty: 2,
};

/** Maximum number of remembered selections, one per set of datacenters and preferences. */
const CONTEXTS_MAX = 64;

interface Selected {
  readonly name: string;
  readonly since: number;
  readonly score: number;
  readonly health: Health;
  degradedSince: number | null;
}

/** Reason why the datacenter is first. */
type RouteReason = "first" | "held" | "best" | "better" | "forced";

interface Route {
  readonly names: readonly string[];
  readonly reason: RouteReason;
  /** Health of the first one; null if there is none. */
  readonly health: Health | null;
  /** Previously selected datacenter and the ratio of the new score to its score; null without a switch. */
  readonly switched: { readonly from: string; readonly ratio: number } | null;
  readonly scores: readonly RouteScore[];
}

/** Factors of a datacenter's score, apart from preference and failure penalty. */
export interface RouteScore {
  readonly name: string;
  readonly score: number;
  readonly upperMs: number;
  readonly load: number;
  readonly quality: number;
}

interface Scored extends RouteScore {
  readonly candidate: Candidate;
}

export class Router {
  readonly #config: RouterConfig;
  readonly #selected = new Map<string, Selected>();
  readonly #coolUntil = new Map<string, number>();
  readonly counters = new RouteCounters();

  constructor(config: RouterConfig = ROUTER_DEFAULTS) {
    this.#config = config;
  }

  /** Penalises a datacenter that did not accept a job. (AD-36.11) */
  failed(name: string, now: number): void {
    this.#coolUntil.set(name, now + this.#config.coolDownMs);
  }

  succeeded(name: string): void {
    this.#coolUntil.delete(name);
  }

  /** Returns all candidates, best first. `preferred`: datacenters the client prefers. */
  route(candidates: readonly Candidate[], preferred: readonly string[], now: number): Route {
    const scored = this.#ranked(candidates, preferred, now);
    const names = scored.map(({ candidate }) => candidate.name);
    const [best] = scored;
    const scores = scored.map(({ candidate: _, ...score }) => score);
    if (best === undefined) return { names, reason: "best", health: null, switched: null, scores };
    const context = JSON.stringify([names.toSorted(), preferred.toSorted()]);
    const before = this.#selected.get(context)?.name;
    const { name, reason } = this.#select(context, scored, best, now);
    const first = scored.find(({ candidate }) => candidate.name === name) ?? best;
    const left = scored.find(({ candidate }) => candidate.name === before);
    const isSwitch = before !== undefined && before !== name;
    if (isSwitch) this.counters.switched(reason);
    return {
      names: [name, ...names.filter((one) => one !== name)],
      ...{ reason, health: first.candidate.health, scores },
      switched: isSwitch ? { from: before, ratio: first.score / (left?.score ?? 1) } : null,
    };
  }

  #ranked(
    candidates: readonly Candidate[],
    preferred: readonly string[],
    now: number,
  ): readonly Scored[] {
    const byDistance = candidates.some(({ distance }) => distance.isKnown);
    return candidates
      .map((candidate) => ({ candidate, ...this.#score(candidate, preferred, now) }))
      .toSorted(
        (a, b) =>
          HEALTHS.indexOf(a.candidate.health) - HEALTHS.indexOf(b.candidate.health) ||
          (byDistance ? a.score - b.score : byFreeCores(a.candidate, b.candidate, preferred)) ||
          (a.candidate.name < b.candidate.name ? -1 : 1),
      );
  }

  /** Score of a candidate; lower is better. (AD-36.7) */
  #score(candidate: Candidate, preferred: readonly string[], now: number): RouteScore {
    const { coolDownPenalty, preference, qualityWeight } = this.#config;
    const { distance, name } = candidate;
    const { upperMs } = distance;
    const quality = 1 + qualityWeight * (1 - distance.quality);
    const load = loadOf(candidate, this.#config);
    const preferenceFactor = preferred.includes(name) ? preference : 1;
    const cooling = now < (this.#coolUntil.get(name) ?? 0) ? coolDownPenalty : 1;
    const score = upperMs * load * quality * preferenceFactor * cooling;
    return { name, score, upperMs, load, quality };
  }

  #select(
    context: string,
    scored: readonly Scored[],
    best: Scored,
    now: number,
  ): { readonly name: string; readonly reason: RouteReason } {
    const selected = this.#selected.get(context);
    const present = scored.find(({ candidate }) => candidate.name === selected?.name);
    if (selected === undefined) return this.#choose(context, best, "first", now);
    if (best.candidate.name === selected.name) {
      this.#isMuchWorse(selected, best.score, now);
      return { name: selected.name, reason: "best" };
    }
    if (present === undefined || this.#isForced(selected, present, best, now))
      return this.#choose(context, best, "forced", now);
    const isHoldDown = now < selected.since + this.#config.holdMs;
    const isBetter = best.score <= present.score * this.#config.improvement;
    if (!isHoldDown && isBetter) return this.#choose(context, best, "better", now);
    if (isBetter) this.counters.blocked();
    return { name: selected.name, reason: "held" };
  }

  /** Whether to switch regardless of hold-down. (AD-36.10) */
  #isForced(selected: Selected, present: Scored, best: Scored, now: number): boolean {
    const health = HEALTHS.indexOf(present.candidate.health);
    return (
      health > HEALTHS.indexOf(best.candidate.health) ||
      health > HEALTHS.indexOf(selected.health) ||
      now < (this.#coolUntil.get(selected.name) ?? 0) ||
      this.#isMuchWorse(selected, present.score, now)
    );
  }

  #isMuchWorse(selected: Selected, score: number, now: number): boolean {
    const { degradation, degradedMs } = this.#config;
    if (score < selected.score * degradation) {
      selected.degradedSince = null;
      return false;
    }
    selected.degradedSince ??= now;
    return now - selected.degradedSince >= degradedMs;
  }

  #choose(
    context: string,
    { candidate: { health, name }, score }: Scored,
    reason: RouteReason,
    now: number,
  ): { readonly name: string; readonly reason: RouteReason } {
    this.#selected.delete(context);
    this.#selected.set(context, { name, health, score, since: now, degradedSince: null });
    const [oldest] = this.#selected.keys();
    if (this.#selected.size > CONTEXTS_MAX && oldest !== undefined) this.#selected.delete(oldest);
    return { name, reason };
  }
}

export function loadOf(candidate: Candidate, config: RouterConfig): number {
  const { cores, coresFree, jobsQueued, managers, managersAway } = candidate;
  const utilisation = 1 - Math.min(1, Math.max(0, coresFree / Math.max(cores, 1)));
  const queue = jobsQueued / (jobsQueued + config.queueHalf);
  const away = managersAway / Math.max(managers, 1);
  const load =
    1 +
    config.utilisationWeight * utilisation +
    config.queueWeight * queue +
    config.awayWeight * away;
  return Math.min(config.loadMax, load);
}

/** Order while no distance is known: preferred ones with free cores, most free cores, shortest queue. (AD-36.20) */
function byFreeCores(a: Candidate, b: Candidate, preferred: readonly string[]): number {
  const rank = ({ coresFree, name }: Candidate): number =>
    coresFree > 0 && preferred.includes(name) ? 0 : 1;
  return (
    rank(a) - rank(b) ||
    b.coresFree - a.coresFree ||
    a.jobsQueued - b.jobsQueued ||
    a.managersAway / Math.max(a.managers, 1) - b.managersAway / Math.max(b.managers, 1)
  );
}
