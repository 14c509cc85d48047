/**
 * The search for the highest load that a system bears, as a pure machine. A probe holds one level:
 * after a time to settle its measured part is judged by the workflow's thresholds.
 *
 *   load │            ✗          levels grow by a factor while they hold; the first that breaks is
 *        │      ✓           ✗    an upper end, and the gap to the highest that held is halved until
 *        │  ✓         ✓  ✓       it is narrow enough. The answer is an interval: held … broke.
 *
 * Time is the measured time of the workflow, so a pause by hand is in no probe.
 */

import { assert } from "../../base/assert.ts";

export interface SearchPlan {
  readonly of: "vus" | "rate";
  /** The first level, which must hold, and the highest that is tried. */
  readonly from: number;
  readonly to: number;
  /** Of a probe: not judged, then judged. */
  readonly settleMs: number;
  readonly holdMs: number;
  /** The gap may be this share of the level that broke. */
  readonly precision: number;
}

export interface Probe {
  readonly load: number;
  readonly held: boolean;
  /** What broke, in words; null when it held. */
  readonly reason: string | null;
  /** Its judged part, in measured time. */
  readonly fromMs: number;
  readonly toMs: number;
}

type SearchInput =
  | { readonly kind: "tick" }
  /** Answer to `judge`. */
  | { readonly kind: "judged"; readonly held: boolean; readonly reason: string | null };

export type SearchEffect =
  /** Make this load from now on. */
  | { readonly kind: "level"; readonly load: number }
  /** The judged part begins: remember what is counted so far. */
  | { readonly kind: "mark" }
  /** The judged part is over: say whether it held. */
  | { readonly kind: "judge" }
  | { readonly kind: "done" };

/** How fast levels grow while they hold. */
const GROWTH = 2;
/** More probes than any sensible range and precision needs; the search ends there with what it knows. */
const PROBES_MAX = 100;

export class BreakpointSearch {
  readonly #plan: SearchPlan;
  readonly #probes: Probe[] = [];
  #load: number;
  #phase: "settling" | "holding" | "judging" | "done" = "settling";
  /** When the phase began. */
  #sinceMs = 0;

  constructor(plan: SearchPlan) {
    assert(plan.from > 0 && plan.to >= plan.from, "a search goes up from a positive load");
    assert(plan.holdMs > 0 && plan.settleMs >= 0, "a probe takes time");
    assert(plan.precision > 0, "a search ends");
    this.#plan = plan;
    this.#load = plan.from;
  }

  get load(): number {
    return this.#load;
  }

  get probes(): readonly Probe[] {
    return this.#probes;
  }

  /** The highest load that held below all that broke; null when even the first broke. */
  get held(): number | null {
    const limit = this.broke ?? Number.POSITIVE_INFINITY;
    const loads = this.#probes.filter(({ held, load }) => held && load < limit);
    return loads.length === 0 ? null : Math.max(...loads.map(({ load }) => load));
  }

  /** The lowest load that broke; null when none did. */
  get broke(): number | null {
    const loads = this.#probes.filter(({ held }) => !held).map(({ load }) => load);
    return loads.length === 0 ? null : Math.min(...loads);
  }

  /** The gap is narrow enough, or there is nothing more to try. */
  get decided(): boolean {
    return this.#phase === "done" && this.#probes.length < PROBES_MAX;
  }

  step(input: SearchInput, nowMs: number): readonly SearchEffect[] {
    if (input.kind === "judged") return this.#onJudged(input.held, input.reason, nowMs);
    const since = nowMs - this.#sinceMs;
    if (this.#phase === "settling" && since >= this.#plan.settleMs) {
      this.#enter("holding", nowMs);
      return [{ kind: "mark" }];
    }
    if (this.#phase === "holding" && since >= this.#plan.holdMs) {
      this.#phase = "judging";
      return [{ kind: "judge" }];
    }
    return [];
  }

  #onJudged(held: boolean, reason: string | null, nowMs: number): readonly SearchEffect[] {
    if (this.#phase !== "judging") return [];
    const probe = { load: this.#load, held, reason, fromMs: this.#sinceMs, toMs: nowMs };
    return this.#proceed(probe);
  }

  /** A probe that was judged where this search went on before: it is not made again. */
  adopt(probe: Probe): void {
    if (this.#probes.every(({ toMs }) => toMs < probe.toMs)) this.#proceed(probe);
  }

  #proceed(probe: Probe): readonly SearchEffect[] {
    this.#probes.push(probe);
    const next = this.#next();
    if (next === null || this.#probes.length >= PROBES_MAX) {
      this.#enter("done", probe.toMs);
      return [{ kind: "done" }];
    }
    this.#load = next;
    this.#enter("settling", probe.toMs);
    return [{ kind: "level", load: next }];
  }

  #enter(phase: "settling" | "holding" | "done", nowMs: number): void {
    this.#phase = phase;
    this.#sinceMs = nowMs;
  }

  /** The level to try next; null when the answer is known. */
  #next(): number | null {
    const { of, precision, to } = this.#plan;
    const { broke, held } = this;
    if (held === null) return null;
    if (broke === null) return held >= to ? null : Math.min(to, held * GROWTH);
    if (broke - held <= precision * broke) return null;
    const middle = (held + broke) / 2;
    if (of === "rate") return middle;
    const whole = Math.floor(middle);
    return whole > held ? whole : null;
  }
}
