/**
 * A breakpoint search applied to the measurements: the thresholds of its workflow judge each probe, from the time it
 * has settled to its end. They are not judged over the whole run, which contains the loads that broke.
 */

import { formatDuration } from "../../base/duration.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import {
  BreakpointSearch,
  type Probe,
  type SearchEffect,
  type SearchPlan,
} from "../plan/breakpoint.ts";
import { formatCount, formatNumber } from "./format.ts";
import type { BreakpointSummary, ThresholdOutcome } from "./model.ts";
import type { Judgement, MetricSource } from "./threshold-judge.ts";
import { ThresholdSpan } from "./threshold-span.ts";
import { parseThreshold } from "./thresholds.ts";

/** Next action after the last judged probe. */
export type SearchCommand =
  | { readonly kind: "level"; readonly load: number; readonly probe: Probe }
  | { readonly kind: "finish"; readonly probe: Probe };

/** The load of a workflow, as its cores reported it last. */
interface LoadNow {
  /** Arrivals that were due and have not begun. */
  readonly missed: number;
  /** Users with an iteration in flight; in closed models all users. */
  readonly activeUsers: number;
  /** Users or arrivals per second that the cores make. */
  readonly target: number;
}

/** Share of a probe's arrivals that may be waiting for a user at its end… */
const WAITING_SHARE_MAX = 0.01;
/** …with a minimum of this duration: the count is no newer than the last frame. */
const WAITING_SECONDS_MIN = 0.1;

interface Criterion {
  readonly span: ThresholdSpan;
  /** Not declared by the user: says nothing while there is nothing to judge. */
  readonly implicit: boolean;
  /** At the highest load that held so far; at the first until then. */
  shown: Judgement | null;
  shownAt: number;
}

export class BreakpointRun {
  readonly #workflow: string;
  readonly #plan: SearchPlan;
  readonly #search: BreakpointSearch;
  readonly #criteria: readonly Criterion[];
  /** Loads whose calls were still in flight at the end of the drain time. */
  readonly #undrained: number[] = [];
  #missedBefore = 0;
  #announcedMs = 0;

  constructor({ name, thresholds }: WorkflowManifest, plan: SearchPlan) {
    this.#workflow = name;
    this.#plan = plan;
    this.#search = new BreakpointSearch(plan);
    const spans = thresholds.map(({ expression }) => spanOf(expression, name));
    const unseen = { shown: null, shownAt: 0 };
    const written = spans.map((span) => ({ span, implicit: false, ...unseen }));
    // The checks of a flow are discovered while it runs.
    const judgesChecks = spans.some(({ threshold }) => threshold.metric === "checks");
    const checks = { span: spanOf("checks.rate >= 100%", name), implicit: true, ...unseen };
    this.#criteria = judgesChecks ? written : [...written, checks];
  }

  /** Current load relative to the first one. */
  get factor(): number {
    return this.#search.level / this.#plan.from;
  }

  /** Share of the search that is done, 0 … 1. */
  progress(measuredMs: number): number {
    return this.#search.progress(measuredMs);
  }

  /** Current action of the search: "trying 80/s". */
  get doing(): string {
    const next = this.#amount(this.#search.load);
    if (!this.#search.isDraining) return `trying ${next}`;
    return `waiting for calls of the load that broke, then trying ${next}`;
  }

  /** Called with every frame. */
  tick(source: MetricSource, load: LoadNow): readonly SearchCommand[] {
    const now = source.measuredMs(this.#workflow);
    // Nothing is measured yet: the warm-up is in no probe.
    if (now <= 0) return [];
    const isDrained = this.#isDrained(load);
    const wasDraining = this.#search.isDraining;
    const effects = this.#search.step({ kind: "tick", isDrained }, now);
    const gaveUp = wasDraining && !this.#search.isDraining && !isDrained;
    if (gaveUp) this.#undrained.push(this.#probed()[0]?.load ?? 0);
    return effects.flatMap((effect) => this.#perform(effect, source, load.missed, now));
  }

  /** True when the cores generate no more than the level, and nothing beyond it is in flight. */
  #isDrained({ activeUsers, target }: LoadNow): boolean {
    const { level } = this.#search;
    return target <= level && activeUsers <= level;
  }

  /** One line on a probe for the messages of a run; null where it was announced before. */
  announce(probe: Probe): string | null {
    if (probe.toMs <= this.#announcedMs) return null;
    this.#announcedMs = probe.toMs;
    const load = this.#amount(probe.load);
    const result = probe.held ? `${load} held` : `${load} broke (${probe.reason ?? ""})`;
    const next = this.#search.isDone
      ? "search finished"
      : `next ${this.#amount(this.#search.load)}`;
    return `breakpoint: ${result}; ${next}`;
  }

  get notes(): string[] {
    if (this.#undrained.length === 0) return [];
    const loads = this.#undrained.map((load) => this.#amount(load)).join(", ");
    return [
      `breakpoint: calls of ${loads} were still in flight ${formatDuration(this.#plan.drainMs)} ` +
        "after the load broke, so lower loads may have been judged by that backlog; " +
        "raise breakpoint.drain to wait longer",
    ];
  }

  #perform(
    effect: SearchEffect,
    source: MetricSource,
    missed: number,
    now: number,
  ): readonly SearchCommand[] {
    switch (effect.kind) {
      case "mark":
        this.#missedBefore = missed;
        for (const { span } of this.#criteria) span.mark(source);
        return [];
      case "judge": {
        const reason = this.#judge(source, missed);
        const answer = { kind: "judged", held: reason === null, reason } as const;
        return this.#search
          .step(answer, now)
          .flatMap((next) => this.#perform(next, source, missed, now));
      }
      case "level":
        return this.#probed().map((probe) => ({ kind: "level", load: effect.load, probe }));
      case "done":
        return this.#probed().map((probe) => ({ kind: "finish", probe }));
    }
  }

  #probed(): readonly Probe[] {
    return this.#search.probes.slice(-1);
  }

  /** Skips a probe that a previous leader judged; see `BreakpointSearch`. */
  adopt(probe: Probe, level: number | null): void {
    this.#search.adopt(probe, level);
  }

  /** Why this probe broke; null when it held. */
  #judge(source: MetricSource, missed: number): string | null {
    const { load } = this.#search;
    const judgements = this.#criteria.map(({ span }) => span.judge(source));
    const broken = this.#criteria.flatMap(({ implicit, span }, at) => {
      const { actual = null, actualText = "", passed = true } = judgements[at] ?? {};
      const held = passed || (implicit && actual === null);
      return held ? [] : [`${span.threshold.expression}: ${actualText}`];
    });
    const waiting = missed - this.#missedBefore;
    const seconds = (this.#plan.holdMs / 1_000) * WAITING_SHARE_MAX;
    if (this.#plan.of === "rate" && waiting > load * Math.max(seconds, WAITING_SECONDS_MIN))
      broken.push(`${formatCount(waiting)} arrivals waited for a free user`);
    for (const [at, criterion] of this.#criteria.entries()) {
      const better = broken.length === 0 && load > criterion.shownAt;
      if (criterion.shown !== null && !better) continue;
      criterion.shown = judgements[at] ?? null;
      criterion.shownAt = load;
    }
    return broken.length === 0 ? null : broken.join("; ");
  }

  /** The thresholds, as they were at the highest load that held, or at the first where none did. */
  outcomes(): ThresholdOutcome[] {
    const base = { workflow: this.#workflow, aborted: false };
    const judged = this.#criteria.filter(
      ({ implicit, shown }) => !implicit || shown?.actual != null,
    );
    const outcomes = judged.map(({ implicit, shown, shownAt, span }) => ({
      ...base,
      expression: span.threshold.expression,
      passed: shown?.passed ?? false,
      actual: shown?.actual ?? null,
      actualText: shown === null ? "no data" : `${shown.actualText} at ${this.#amount(shownAt)}`,
      implicit,
    }));
    if (this.#search.held !== null || outcomes.some(({ passed }) => !passed)) return outcomes;
    // The thresholds held, and yet the load did not: arrivals waited, or nothing was judged.
    const none = { expression: "a load that holds", passed: false, actual: null, implicit: true };
    return [...outcomes, { ...base, ...none, actualText: this.#text() }];
  }

  summary(): BreakpointSummary {
    const { broke, decided, held, probes } = this.#search;
    return {
      of: this.#plan.of,
      held,
      broke,
      decided,
      text: this.#text(),
      probes: probes.map(({ fromMs, load, reason, toMs, ...probe }) => ({
        load: Number(load.toFixed(3)),
        held: probe.held,
        reason,
        fromSeconds: fromMs / 1_000,
        toSeconds: toMs / 1_000,
      })),
    };
  }

  #text(): string {
    const { broke, held, probes } = this.#search;
    if (probes.length === 0) return "no load was judged";
    const why = probes.find(({ load }) => load === broke)?.reason ?? "";
    if (held === null) return `even ${this.#amount(this.#plan.from)} broke (${why})`;
    if (broke === null) {
      const most = held >= this.#plan.to ? ", the highest that was to be tried" : "";
      return `${this.#amount(held)} held${most}; nothing broke`;
    }
    return `${this.#amount(held)} held, ${this.#amount(broke)} broke (${why})`;
  }

  #amount(load: number): string {
    if (this.#plan.of === "rate") return `${formatNumber(load)}/s`;
    return load === 1 ? "1 virtual user" : `${formatCount(load)} virtual users`;
  }
}

function spanOf(expression: string, workflow: string): ThresholdSpan {
  const parsed = parseThreshold(expression);
  if (!parsed.ok) throw new Error(parsed.problem);
  return new ThresholdSpan(parsed.threshold, workflow);
}
