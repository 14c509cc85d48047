/**
 * One iteration of one virtual user, and the only place that counts: when its parts were due, how late they were, the
 * results of its calls and checks, and how it ended. The drivers of a user (`user.ts`: layers of steps) report what
 * happens and have no counting rules of their own.
 *
 * A user reuses one object for all its iterations.
 */

import { errorText } from "../core/base/error-text.ts";
import type { CallRecord } from "../protocols/protocol.ts";
import type { CutOff, Outcome } from "./outcome.ts";
import { PausedTime } from "./paused-time.ts";
import type { Recorder } from "./recorder.ts";

/** Pauses before the first call that are kept one by one; earlier ones only as a sum. */
const PAUSES_MAX = 64;

export class Iteration {
  /** When it should have begun. */
  dueAt = 0;
  /** When it began; pacing counts from here. Until then, when a user took it on. */
  beganAt = 0;
  readonly #recorder: Recorder;
  /** Measured against a plan of arrivals: open models. */
  readonly #planned: boolean;
  /** When its first call ended: what begins later waited for an answer, not for the plan. */
  #answeredAt = Number.POSITIVE_INFINITY;
  /** Declared pauses before that, as non-overlapping pairs of start and end. */
  #pauses: number[] | null = null;
  #earlierPausesMs = 0;
  /** Due time of the call that ended last; before the first, of the iteration itself. */
  #lastDueAt = 0;
  /** Null until the user rests: most never do. */
  #paused: PausedTime | null = null;
  #began = false;

  constructor(recorder: Recorder, planned: boolean) {
    this.#recorder = recorder;
    this.#planned = planned;
  }

  /** A user takes the iteration on: what is done for it from here on is part of its lateness. */
  arrive(dueAt: number, now: number): void {
    this.dueAt = dueAt;
    this.beganAt = now;
    this.#began = false;
    if (!this.#planned) return;
    if (this.#recorder.measures(dueAt)) this.#recorder.arrivalStarted(now - dueAt);
    this.#answeredAt = Number.POSITIVE_INFINITY;
    this.#pauses = null;
    this.#earlierPausesMs = 0;
  }

  begin(now: number): void {
    this.beganAt = now;
    this.#began = true;
    this.#paused?.begin(now);
    if (!this.#planned) this.dueAt = now;
    this.#lastDueAt = this.dueAt;
  }

  /** Whether it was due in the measured time, not in the warm-up. */
  get measured(): boolean {
    return this.#recorder.measures(this.dueAt);
  }

  /** Records a pause declared by the author: it is not lateness. */
  pause(ms: number, now: number): void {
    this.#paused ??= new PausedTime();
    this.#paused.pause(ms, now);
    if (!this.#planned || this.#answeredAt < now || !(ms > 0)) return;
    this.#pauses ??= [];
    const pauses = this.#pauses;
    const from = Math.max(now, pauses.at(-1) ?? now);
    if (from >= now + ms) return;
    pauses.push(from, now + ms);
    if (pauses.length > 2 * PAUSES_MAX) {
      const [first = 0, last = 0] = pauses.splice(0, 2);
      this.#earlierPausesMs += last - first;
    }
  }

  /**
   * Returns when what begins at `startedAt` was due. Before the first call has ended that is the planned time plus the
   * pauses made since: waiting for a free user, setup and own code are lateness. Later it is the start itself, because
   * only an answer could bring the user there.
   */
  dueOf(startedAt: number): number {
    if (!this.#planned || startedAt >= this.#answeredAt) return startedAt;
    return this.#pauses === null ? this.dueAt : this.dueAt + this.#pausedBefore(startedAt);
  }

  #pausedBefore(until: number): number {
    let sum = this.#earlierPausesMs;
    const pauses = this.#pauses ?? [];
    for (let at = 0; at < pauses.length; at += 2) {
      const from = pauses[at] as number;
      if (from >= until) break;
      sum += Math.min(until, pauses[at + 1] as number) - from;
    }
    return sum;
  }

  /** A call ended, measured or not. */
  answered(at: number): void {
    if (this.#planned && at < this.#answeredAt) this.#answeredAt = at;
  }

  /** Records a call that ended at `endedAt`, began at `startedAt` and was due at `dueAt`. */
  call(index: number, record: CallRecord, startedAt: number, dueAt: number, endedAt: number): void {
    this.#lastDueAt = dueAt;
    this.#recorder.call(index, record, startedAt, dueAt, endedAt);
  }

  /** The code of a step threw before it had a result. */
  exception(index: number, dueAt: number, now: number, error: unknown): void {
    this.#recorder.exception(index, dueAt, now, errorText(error));
  }

  /** A check refers to the last answer, and counts where that does. */
  check(index: number, passed: boolean, dueAt = this.#lastDueAt): void {
    this.#recorder.check(index, passed, dueAt);
  }

  /** A call outside the iterations was cut off. */
  asideCutOff(index: number, startedAt: number, now: number, sent: number): void {
    this.#recorder.asideCutOff(index, startedAt, now, sent);
  }

  /** A call was cut off at the end of the graceful stop. */
  cutOff(index: number, startedAt: number, dueAt: number, now: number, sent: number): void {
    this.#recorder.cutOff(index, startedAt, dueAt, now, sent);
  }

  /** Ends an iteration that never began: the plan was over while the user was set up. */
  neverBegan(now: number): void {
    if (this.#planned) this.#recorder.waited(this.dueAt, now);
    this.end("interrupted", now);
  }

  /** The user was set up for this iteration. */
  setUp(now: number): void {
    this.#recorder.setUp(now - this.beganAt);
  }

  /** The end of the graceful stop cut off the set-up of its user. */
  neverSetUp(waitedFor: CutOff | null, now: number): void {
    if (waitedFor !== "pause") this.#recorder.neverSetUp(this.dueAt, this.beganAt, now);
    this.neverBegan(now);
  }

  /** The end of the graceful stop cut it off. */
  interrupt(waitingFor: CutOff, now: number): void {
    if (waitingFor === "code") this.#recorder.unresolved(this.dueAt, this.beganAt, now);
    this.end("interrupted", now);
  }

  end(outcome: Outcome, now: number): void {
    const { counts } = this.#recorder;
    if (outcome === "completed" && this.#recorder.inside(now)) counts.iterationsInside++;
    if (!this.#recorder.measures(this.dueAt)) return;
    // The common case; a named property is cheaper for V8 than a lookup.
    if (outcome === "completed") counts.completed++;
    else counts[outcome]++;
    // Shortened by the end of the run, it would make durations look better than they are.
    if (!this.#began || outcome === "interrupted") return;
    const pausedMs = this.#paused?.upTo(now) ?? 0;
    this.#recorder.wholeIteration(outcome, this.dueAt, this.beganAt, now, pausedMs);
  }

  group(
    index: number,
    failed: boolean,
    { beganAt, dueAt }: { readonly beganAt: number; readonly dueAt: number },
    endedAt: number,
    pausedMs: number,
  ): void {
    this.#recorder.group(index, failed, dueAt, beganAt, endedAt, pausedMs);
  }

  /** A call outside the iterations ended: in userSetup, say. */
  aside(index: number, record: CallRecord): void {
    this.#recorder.aside(index, record);
  }
}
