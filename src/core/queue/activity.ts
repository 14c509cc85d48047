/**
 * Activity of a queue over time: tasks submitted and finished, how long they waited, how many there were. The leader
 * closes a window at every tick; keeps the last hour in windows of ten seconds, the last day in windows of four
 * minutes, and nothing older.
 *
 * A time in which this node did not lead has no windows, instead of zeros.
 */

import { Histogram } from "../load/stats/histogram.ts";
import type { EventType, TaskState } from "./states.ts";

/** How often the leader ticks. */
export const ACTIVITY_TICK_MS = 10_000;
/** Ticks per long window. */
const TICKS_PER_LONG = 24;
/** Windows of each kind: an hour of short ones, a day of long ones. */
export const ACTIVITY_WINDOWS_MAX = 360;

export interface ActivityWindow {
  /** Start and end on the node's clock, in milliseconds since 1970. */
  readonly from_ms: number;
  readonly to_ms: number;
  readonly submitted: number;
  /** Attempts assigned to a worker. */
  readonly assigned: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Attempts that failed or were lost, and were retried. */
  readonly retried: number;
  /** From ready to assigned, in milliseconds; null when nothing was assigned. */
  readonly wait_p50_ms: number | null;
  readonly wait_p95_ms: number | null;
  readonly wait_max_ms: number | null;
  /** At the end of the window; null when they could not be counted. */
  readonly queued: number | null;
  readonly running: number | null;
}

interface QueueDepth {
  readonly queued: number;
  readonly running: number;
}

type Count = "submitted" | "assigned" | "succeeded" | "failed" | "cancelled" | "retried";

interface Tally {
  readonly counts: Record<Count, number>;
  /** Waiting times in microseconds. */
  readonly waits: Histogram;
}

export class Activity {
  readonly #short: ActivityWindow[] = [];
  readonly #long: ActivityWindow[] = [];
  #open = newTally();
  #openedAtMs = 0;
  #openLong = newTally();
  #longOpenedAtMs = 0;
  #ticksOfLong = 0;

  /** Begins a leadership: activity before it is unknown here. */
  begin(nowMs: number): void {
    this.#open = newTally();
    this.#openLong = newTally();
    this.#openedAtMs = nowMs;
    this.#longOpenedAtMs = nowMs;
    this.#ticksOfLong = 0;
  }

  moved(event: EventType, to: TaskState): void {
    const count = countOf(event, to);
    if (count !== undefined) this.#open.counts[count]++;
  }

  waited(ms: number): void {
    this.#open.waits.record(Math.max(0, Math.round(ms * 1_000)));
  }

  tick(nowMs: number, depth: QueueDepth | null): void {
    // A clock that was set back would make overlapping windows.
    if (nowMs <= this.#openedAtMs) {
      this.begin(nowMs);
      return;
    }
    keep(this.#short, windowOf(this.#open, this.#openedAtMs, nowMs, depth));
    addTo(this.#openLong, this.#open);
    this.#open = newTally();
    this.#openedAtMs = nowMs;
    if (++this.#ticksOfLong < TICKS_PER_LONG) return;
    keep(this.#long, windowOf(this.#openLong, this.#longOpenedAtMs, nowMs, depth));
    this.#openLong = newTally();
    this.#longOpenedAtMs = nowMs;
    this.#ticksOfLong = 0;
  }

  /** Oldest first. */
  windows(span: "hour" | "day"): readonly ActivityWindow[] {
    return span === "hour" ? this.#short : this.#long;
  }
}

function countOf(event: EventType, to: TaskState): Count | undefined {
  if (event === "created") return "submitted";
  if (event === "assigned") return "assigned";
  if (to === "QUEUED") return event === "requeued" ? undefined : "retried";
  if (event === "completed") return "succeeded";
  if (to === "FAILED") return "failed";
  return to === "CANCELLED" ? "cancelled" : undefined;
}

function newTally(): Tally {
  const counts = { submitted: 0, assigned: 0, succeeded: 0, failed: 0, cancelled: 0, retried: 0 };
  return { counts, waits: new Histogram() };
}

function addTo(sum: Tally, part: Tally): void {
  for (const name of Object.keys(sum.counts) as Count[]) sum.counts[name] += part.counts[name];
  sum.waits.merge(part.waits);
}

function windowOf(
  { counts, waits }: Tally,
  fromMs: number,
  toMs: number,
  depth: QueueDepth | null,
): ActivityWindow {
  const none = waits.count === 0;
  const [p50 = 0, p95 = 0] = none ? [] : waits.quantiles([0.5, 0.95]);
  return {
    from_ms: fromMs,
    to_ms: toMs,
    ...counts,
    wait_p50_ms: none ? null : p50 / 1_000,
    wait_p95_ms: none ? null : p95 / 1_000,
    wait_max_ms: none ? null : waits.max / 1_000,
    queued: depth?.queued ?? null,
    running: depth?.running ?? null,
  };
}

function keep(windows: ActivityWindow[], window: ActivityWindow): void {
  windows.push(window);
  if (windows.length > ACTIVITY_WINDOWS_MAX) windows.shift();
}
