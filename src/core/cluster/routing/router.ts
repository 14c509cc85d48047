/**
 * In which order datacenters are asked to take a job: by health first, then by distance, load and how well the
 * distance is known. Whoever was first stays it for a while, so that work does not swing to and fro. (AD-36)
 *
 *   first decision ──▶ selected ──┬─ it fell behind by health, cannot take it, or got much worse ──▶ another at once
 *                         ▲       ├─ held long enough, and another is clearly better ─────────────▶ another
 *                         └───────┴─ else: it stays
 *
 * One that failed a dispatch counts for more for a while. As long as distances are not known, free cores decide.
 */

import type { Distance } from "./round-trips.ts";
import { RouteCounters } from "./route-counters.ts";

/** In the order of preference; one is never asked before all of a better health. (AD-36.6) */
export const HEALTHS = ["healthy", "busy", "degraded"] as const;
type Health = (typeof HEALTHS)[number];

export interface Candidate {
  readonly name: string;
  readonly health: Health;
  readonly cores: number;
  readonly coresFree: number;
  readonly jobsQueued: number;
  readonly managers: number;
  /** That cannot be reached. */
  readonly managersAway: number;
  readonly distance: Distance;
}

interface RouterConfig {
  readonly utilisationWeight: number;
  readonly queueWeight: number;
  readonly awayWeight: number;
  /** Jobs that wait at which the queue counts for half. */
  readonly queueHalf: number;
  readonly loadMax: number;
  readonly qualityWeight: number;
  /** Of the score of a preferred datacenter. */
  readonly preference: number;
  readonly holdMs: number;
  /** Another must be at most this part of the present one's score. */
  readonly improvement: number;
  /** The present one may become this many times worse than when it was chosen, for so long. */
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

/** Choices that are remembered: one for each set of datacenters and preferences that jobs have. */
const CONTEXTS_MAX = 64;

interface Selected {
  readonly name: string;
  readonly since: number;
  readonly score: number;
  readonly health: Health;
  degradedSince: number | null;
}

/** Why it is the first one. */
type RouteReason = "first" | "held" | "best" | "better" | "forced";

interface Route {
  readonly names: readonly string[];
  readonly reason: RouteReason;
  /** Of the first one; null: there is none. */
  readonly health: Health | null;
  /** Whom it takes the place of, and how many times its score the new one has; null: of nobody. */
  readonly switched: { readonly from: string; readonly ratio: number } | null;
  readonly scores: readonly RouteScore[];
}

/** What the score of a datacenter is the product of, beside preference and what failed there. */
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

  /** It did not take a job that it was given. (AD-36.11) */
  failed(name: string, now: number): void {
    this.#coolUntil.set(name, now + this.#config.coolDownMs);
  }

  succeeded(name: string): void {
    this.#coolUntil.delete(name);
  }

  /** All of them, best first; `preferred`: those that whoever asks would rather have. */
  route(candidates: readonly Candidate[], preferred: readonly string[], now: number): Route {
    const scored = this.#inOrder(candidates, preferred, now);
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

  #inOrder(
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
          (byDistance ? a.score - b.score : byRoom(a.candidate, b.candidate, preferred)) ||
          (a.candidate.name < b.candidate.name ? -1 : 1),
      );
  }

  /** Lower is better. (AD-36.7) */
  #score(candidate: Candidate, preferred: readonly string[], now: number): RouteScore {
    const { coolDownPenalty, preference, qualityWeight } = this.#config;
    const { distance, name } = candidate;
    const { upperMs } = distance;
    const quality = 1 + qualityWeight * (1 - distance.quality);
    const load = loadOf(candidate, this.#config);
    const liked = preferred.includes(name) ? preference : 1;
    const cooling = now < (this.#coolUntil.get(name) ?? 0) ? coolDownPenalty : 1;
    return { name, score: upperMs * load * quality * liked * cooling, upperMs, load, quality };
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
    const isHeld = now < selected.since + this.#config.holdMs;
    const isBetter = best.score <= present.score * this.#config.improvement;
    if (!isHeld && isBetter) return this.#choose(context, best, "better", now);
    if (isBetter) this.counters.blocked();
    return { name: selected.name, reason: "held" };
  }

  /** (AD-36.10) */
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

/** While no distance is known: preferred ones with room, then most free cores, shortest queue. (AD-36.20) */
function byRoom(a: Candidate, b: Candidate, preferred: readonly string[]): number {
  const liked = ({ coresFree, name }: Candidate): number =>
    coresFree > 0 && preferred.includes(name) ? 0 : 1;
  return (
    liked(a) - liked(b) ||
    b.coresFree - a.coresFree ||
    a.jobsQueued - b.jobsQueued ||
    a.managersAway / Math.max(a.managers, 1) - b.managersAway / Math.max(b.managers, 1)
  );
}
