/**
 * The start of a job that a gate begins in several datacenters at once: its cores are loaded and wait for the
 * moment that they are told. One that nobody asks after for a while gives its cores back.
 */

import type { RunState } from "./run-state.ts";

/** A gate asks several times a second; without a word for so long nobody means to start the job. */
const HELD_MS_MAX = 60_000;
const NEVER = Number.POSITIVE_INFINITY;

export class HeldStart {
  readonly #state: RunState;
  #startAt = NEVER;
  #heldUntil = NEVER;

  constructor(state: RunState) {
    this.#state = state;
  }

  /** Whether a job that is loaded may begin now; if not, it is waited for from here on. */
  isDue(now: number, wall: number): boolean {
    const { history, submission } = this.#state;
    if (submission?.held !== true) return true;
    const start = history.find((one) => one.kind === "control" && one.control.kind === "start");
    if (start?.kind !== "control" || start.control.kind !== "start") {
      this.#heldUntil = now + HELD_MS_MAX;
      return false;
    }
    this.#heldUntil = NEVER;
    this.#startAt = start.control.atMs > wall ? now + start.control.atMs - wall : NEVER;
    return this.#startAt === NEVER;
  }

  /** It could begin, and nobody has said when. */
  get isWaiting(): boolean {
    return this.#heldUntil !== NEVER;
  }

  /** Somebody still means to start it. */
  holdOn(now: number): void {
    if (this.isWaiting) this.#heldUntil = now + HELD_MS_MAX;
  }

  /** It has begun, or never will. */
  forget(): void {
    this.#startAt = NEVER;
    this.#heldUntil = NEVER;
  }

  nextDeadline(): number {
    return Math.min(this.#startAt, this.#heldUntil);
  }

  isStartReached(now: number): boolean {
    return now >= this.#startAt;
  }

  isForgotten(now: number): boolean {
    return now >= this.#heldUntil;
  }
}
