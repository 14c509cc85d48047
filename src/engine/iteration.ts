/**
 * One iteration of one virtual user, and the only thing that counts: when its parts were due, how
 * late they were, what its calls and checks came to, and how it ended. Whatever drives a user
 * (`user.ts`: layers of steps) tells it what happens and holds no rule of counting itself.
 *
 * A user has one for all its iterations, so that none costs an object.
 */

import type { CallRecord } from "../protocols/protocol.ts";
import type { Recorder } from "./recorder.ts";

/** How an iteration ended: all of it was done, or the end of the plan cut it off. */
export type Outcome = "completed" | "interrupted";

export class Iteration {
  /** When it should have begun. */
  dueAt = 0;
  /** When it began; pacing counts from here. */
  beganAt = 0;
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  begin(dueAt: number, now: number): void {
    this.dueAt = dueAt;
    this.beganAt = now;
  }

  /** When what begins at `now` was due. Only the first layer can be late against the plan. */
  dueOf(layer: number, now: number): number {
    return layer === 0 ? this.dueAt : now;
  }

  /** A call ended that began at `startedAt` and was due at `dueAt`. */
  call(index: number, record: CallRecord, startedAt: number, dueAt: number): void {
    this.#recorder.call(index, record, startedAt, dueAt);
  }

  /** The code of a step threw before it had a result. */
  exception(index: number, startedAt: number, endedAt: number, dueAt: number): void {
    this.#recorder.exception(index, startedAt, endedAt, dueAt);
  }

  check(index: number, passed: boolean): void {
    if (this.#recorder.measures(this.beganAt)) this.#recorder.check(index, passed);
  }

  /** A call was cut off at the end of the graceful stop. */
  cutOff(index: number): void {
    if (this.#recorder.measures(this.beganAt)) this.#recorder.interrupted(index);
  }

  end(outcome: Outcome): void {
    if (!this.#recorder.measures(this.beganAt)) return;
    if (outcome === "completed") this.#recorder.iterations++;
    else this.#recorder.interruptedIterations++;
  }
}
