/**
 * Start of a job controlled by a gate: its cores are loaded and wait for their start time. A job that no gate polls for
 * a while returns its cores.
 */

import type { RunMachine } from "../../load/execution/run-machine.ts";
import type { Control } from "../messages.ts";
import type { RunState } from "./run-state.ts";

/** A gate polls several times a second; without a poll for this long the job is orphaned. */
const HELD_MS_MAX = 60_000;
const NEVER = Number.POSITIVE_INFINITY;

export class HeldStart {
  readonly #state: RunState;
  #startAt = NEVER;
  #heldUntil = NEVER;
  #orphanedAt: number;

  constructor(state: RunState, now: number) {
    this.#state = state;
    this.#orphanedAt = now + HELD_MS_MAX;
  }

  /** Whether a loaded job may begin now; if not, it waits for its start time from here on. */
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

  /** True when the job is ready and has no start time yet. */
  get isWaiting(): boolean {
    return this.#heldUntil !== NEVER;
  }

  /** Records that a gate still polls the job, or that it is led without one. */
  onPolled(now: number): void {
    this.#orphanedAt = now + HELD_MS_MAX;
    if (this.isWaiting) this.#heldUntil = this.#orphanedAt;
  }

  /** True when no gate has polled the job for too long. */
  isOrphaned(now: number): boolean {
    return now >= this.#orphanedAt;
  }

  /** Clears the state: the job has begun, or never will. */
  forget(): void {
    this.#startAt = NEVER;
    this.#heldUntil = NEVER;
  }

  /** `waits`: the job can only continue on a directive of the gate. */
  nextDeadline(waits: boolean): number {
    return Math.min(this.#startAt, this.#heldUntil, waits ? this.#orphanedAt : NEVER);
  }

  isStartReached(now: number): boolean {
    return now >= this.#startAt;
  }

  isForgotten(now: number): boolean {
    return now >= this.#heldUntil;
  }
}

/** Controls that a leader applies itself when the gate is gone: nothing waits for other datacenters any more. */
export function controlsAlone(machine: RunMachine | null): readonly Control[] {
  const error = "no gate asks after it any more";
  return (machine?.waits ?? []).map(({ workflow }) => ({ kind: "over", workflow, error }));
}
