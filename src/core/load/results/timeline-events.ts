/** What happens to a run, kept for its time axis. */

import type { TimelineEvent } from "./model.ts";
import type { ThresholdJudge } from "./thresholds.ts";

/** Later ones are counted only. */
const EVENTS_MAX = 500;
/** Of one threshold, so that one that comes and goes leaves room for the others. */
const CROSSINGS_MAX = 20;

export class TimelineEvents {
  readonly #list: TimelineEvent[] = [];
  /** Whether each threshold held when it was last looked at, and how often that changed. */
  readonly #held = new Map<ThresholdJudge, { holds: boolean; crossings: number }>();
  #dropped = 0;

  add(event: TimelineEvent): void {
    if (this.#list.length < EVENTS_MAX) this.#list.push(event);
    else this.#dropped++;
  }

  /** A threshold was looked at. What never held has not been crossed: many floors begin at zero. */
  judged(judge: ThresholdJudge, atSeconds: number): void {
    const { latest, threshold, workflow } = judge;
    if (latest === null) return;
    const before = this.#held.get(judge) ?? { holds: false, crossings: 0 };
    const crossed = before.holds !== latest.holds && (before.holds || before.crossings > 0);
    const crossings = before.crossings + (crossed ? 1 : 0);
    this.#held.set(judge, { holds: latest.holds, crossings });
    if (!crossed || crossings > CROSSINGS_MAX) return;
    const what = latest.holds ? "holds again" : "does not hold any more";
    this.add({
      atSeconds,
      kind: "threshold crossed",
      workflow: threshold.workflow ?? workflow,
      text: `${threshold.expression} ${what}: ${latest.text}`,
    });
  }

  /** In the order of time, with others that were found later. */
  with(found: readonly TimelineEvent[]): TimelineEvent[] {
    return [...this.#list, ...found].sort((a, b) => a.atSeconds - b.atSeconds);
  }

  /** A note where not all were kept. */
  get dropped(): string[] {
    return this.#dropped === 0 ? [] : [`${this.#dropped} later events of the run were not kept`];
  }
}
