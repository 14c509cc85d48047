/** Events of a run, kept for its time axis. */

import type { TimelineEvent } from "./model.ts";
import type { ThresholdJudge } from "./thresholds.ts";

/** Later ones are only counted. */
const EVENTS_MAX = 500;
/** Maximum events of one threshold, so that a flapping one leaves space for the others. */
const CROSSINGS_MAX = 20;

export class TimelineEvents {
  readonly #list: TimelineEvent[] = [];
  /** Whether each threshold held when it was last checked, and how often that changed. */
  readonly #held = new Map<ThresholdJudge, { holds: boolean; crossings: number }>();
  #dropped = 0;

  add(event: TimelineEvent): void {
    if (this.#list.length < EVENTS_MAX) this.#list.push(event);
    else this.#dropped++;
  }

  /** Records a check of a threshold. One that never held has not been crossed: many minimums begin at zero. */
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

  /** In order of time, with others that were found later. */
  with(found: readonly TimelineEvent[]): TimelineEvent[] {
    return [...this.#list, ...found].sort((a, b) => a.atSeconds - b.atSeconds);
  }

  /** A note where not all were kept. */
  get dropped(): string[] {
    return this.#dropped === 0 ? [] : [`${this.#dropped} later events of the run were not kept`];
  }
}
