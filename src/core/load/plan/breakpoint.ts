/**
 * The search for the highest load that a system bears, as a pure machine. A probe holds one level:
 * after a time to settle its measured part is judged by the workflow's thresholds.
 *
 *   load │            ✗          levels grow by a factor while they hold; the first that breaks is
 *        │      ✓           ✗    an upper end, and the gap to the highest that held is halved until
 *        │  ✓         ✓  ✓       it is narrow enough. The answer is an interval: held … broke.
 *
 * A load that broke leaves a backlog in the target. The search waits until its iterations have finished before it
 * tries the next load, which would otherwise be judged by calls that queue behind that backlog:
 *
 *   settling ──settle──▶ holding ──hold──▶ judging ──held──▶ settling (next load)
 *                                             └──broke──▶ draining ──nothing in flight──▶ settling (next load)
 *
 * Time is the measured time of the workflow, so a pause by hand is in no probe.
 */

import { assert } from "../../base/assert.ts";

export interface SearchPlan {
  readonly of: "vus" | "rate";
  /** The first level, which must hold, and the highest that is tried. */
  readonly from: number;
  readonly to: number;
  /** Durations of a probe: not judged, then judged. */
  readonly settleMs: number;
  readonly holdMs: number;
  /** The longest wait for the iterations of a load that broke. */
  readonly drainMs: number;
  /** The gap may be this share of the level that broke. */
  readonly precision: number;
}

export interface Probe {
  readonly load: number;
  readonly held: boolean;
  /** Why it broke, as text; null when it held. */
  readonly reason: string | null;
  /** The judged part, in measured time. */
  readonly fromMs: number;
  readonly toMs: number;
}

type SearchInput =
  /** `isDrained`: no iteration of the load that broke is in flight. Only read while draining. */
  | { readonly kind: "tick"; readonly isDrained: boolean }
  /** Answer to `judge`. */
  | { readonly kind: "judged"; readonly held: boolean; readonly reason: string | null };

export type SearchEffect =
  /** Generate this load from now on; 0 begins nothing. */
  | { readonly kind: "level"; readonly load: number }
  /** The judged part begins: remember what is counted so far. */
  | { readonly kind: "mark" }
  /** The judged part is over: say whether it held. */
  | { readonly kind: "judge" }
  | { readonly kind: "done" };

/** Growth factor of levels while they hold. */
const GROWTH = 2;
/** More probes than any sensible range and precision needs; the search ends there with what it knows. */
const PROBES_MAX = 100;

export class BreakpointSearch {
  readonly #plan: SearchPlan;
  readonly #probes: Probe[] = [];
  #load: number;
  #phase: "settling" | "holding" | "judging" | "draining" | "done" = "settling";
  /** When the phase began. */
  #sinceMs = 0;

  constructor(plan: SearchPlan) {
    assert(plan.from > 0 && plan.to >= plan.from, "a search goes up from a positive load");
    assert(plan.holdMs > 0 && plan.settleMs >= 0, "a probe takes time");
    assert(plan.precision > 0, "a search ends");
    this.#plan = plan;
    this.#load = plan.from;
  }

  /** The load of the present probe, or of the next one while draining. */
  get load(): number {
    return this.#load;
  }

  /** The load to make now: arrivals stop while draining; a lower number of users drains by itself. */
  get level(): number {
    return this.#phase === "draining" && this.#plan.of === "rate" ? 0 : this.#load;
  }

  get isDone(): boolean {
    return this.#phase === "done";
  }

  get isDraining(): boolean {
    return this.#phase === "draining";
  }

  /** Share of the search that is done, 0 … 1, against the most probes that it may still need. Never falls. */
  progress(nowMs: number): number {
    if (this.#phase === "done") return 1;
    const done = this.#probes.length;
    const { holdMs, settleMs } = this.#plan;
    const before = this.#phase === "settling" ? 0 : settleMs;
    const inside = this.#phase === "draining" ? 0 : before + nowMs - this.#sinceMs;
    const present = Math.min(1, Math.max(0, inside / (settleMs + holdMs)));
    return (done + present) / (done + 1 + this.#probesAfterMax());
  }

  /** The most probes that may follow the present one. */
  #probesAfterMax(): number {
    const { precision, to } = this.#plan;
    const { broke, held } = this;
    // The gap must fall to `precision` of the load that breaks, which is above the one that held.
    const halvings = (gap: number, held: number): number =>
      Math.max(0, Math.ceil(Math.log2(gap / (precision * held))));
    if (broke !== null) return Math.max(0, halvings(broke - (held ?? broke), held ?? broke) - 1);
    const raises = Math.ceil(Math.log2(to / this.#load));
    return raises + halvings(GROWTH - 1, 1);
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
    if (this.#phase === "draining" && (input.isDrained || since >= this.#plan.drainMs))
      return this.#onDrained(nowMs);
    return [];
  }

  #onDrained(nowMs: number): readonly SearchEffect[] {
    const before = this.level;
    this.#enter("settling", nowMs);
    return this.level === before ? [] : [{ kind: "level", load: this.level }];
  }

  #onJudged(held: boolean, reason: string | null, nowMs: number): readonly SearchEffect[] {
    if (this.#phase !== "judging") return [];
    const probe = { load: this.#load, held, reason, fromMs: this.#sinceMs, toMs: nowMs };
    return this.#proceed(probe);
  }

  /** Skips a probe that a previous leader judged. `level`: what followed; null when the search ended there. */
  adopt(probe: Probe, level: number | null): void {
    if (this.#probes.every(({ toMs }) => toMs < probe.toMs)) this.#proceed(probe);
    else if (this.#phase === "draining" && level === this.#load)
      this.#enter("settling", probe.toMs);
  }

  #proceed(probe: Probe): readonly SearchEffect[] {
    this.#probes.push(probe);
    const next = this.#next();
    if (next === null || this.#probes.length >= PROBES_MAX) {
      this.#enter("done", probe.toMs);
      return [{ kind: "done" }];
    }
    this.#load = next;
    this.#enter(probe.held ? "settling" : "draining", probe.toMs);
    return [{ kind: "level", load: this.level }];
  }

  #enter(phase: "settling" | "holding" | "draining" | "done", nowMs: number): void {
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
