/**
 * The start of a job that a gate begins: its cores are loaded and wait for the moment that they are told. One that
 * nobody asks after for a while gives its cores back.
 */

import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { Control } from "../messages.ts";
import type { RunState } from "./run-state.ts";

/** A gate asks several times a second; without a word for so long nobody means to start the job. */
const HELD_MS_MAX = 60_000;
const NEVER = Number.POSITIVE_INFINITY;

export class HeldStart {
  readonly #state: RunState;
  #startAt = NEVER;
  #heldUntil = NEVER;
  #forsakenAt: number;

  constructor(state: RunState, now: number) {
    this.#state = state;
    this.#forsakenAt = now + HELD_MS_MAX;
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

  /** Somebody still means to start it, or leads it. */
  holdOn(now: number): void {
    this.#forsakenAt = now + HELD_MS_MAX;
    if (this.isWaiting) this.#heldUntil = this.#forsakenAt;
  }

  /** Nobody has asked after it for long. */
  isForsaken(now: number): boolean {
    return now >= this.#forsakenAt;
  }

  /** It has begun, or never will. */
  forget(): void {
    this.#startAt = NEVER;
    this.#heldUntil = NEVER;
  }

  /** `waits`: it can only go on with a word of whoever asks after it. */
  nextDeadline(waits: boolean): number {
    return Math.min(this.#startAt, this.#heldUntil, waits ? this.#forsakenAt : NEVER);
  }

  isStartReached(now: number): boolean {
    return now >= this.#startAt;
  }

  isForgotten(now: number): boolean {
    return now >= this.#heldUntil;
  }
}

/** What whoever leads a job without a gate tells itself: nothing waits for other datacenters any more. */
export function controlsAlone(machine: RunMachine | null): readonly Control[] {
  const error = "no gate asks after it any more";
  return (machine?.waits ?? []).map(({ workflow }) => ({ kind: "over", workflow, error }));
}
