/**
 * Users that must wait before an iteration: for a row, for their share of the iterations, or for the end of a pause.
 * Waiting for a row is generator time, and an arrival whose user waits is due and has not begun.
 */

import type { Recorder } from "./recorder.ts";
import type { VirtualUser } from "./user.ts";

export class WaitingUsers {
  readonly #recorder: Recorder;
  /** Iterations begin at planned times: open models. */
  readonly #planned: boolean;
  readonly #dueAt = new Map<VirtualUser, number>();
  /** Measured arrivals whose user waited until the plan was over. */
  #neverBegan = 0;

  constructor(recorder: Recorder, planned: boolean) {
    this.#recorder = recorder;
    this.#planned = planned;
  }

  /** Measured arrivals that are due and waiting; at the end, those that waited in vain. */
  get arrivals(): number {
    let waiting = this.#neverBegan;
    if (!this.#planned) return waiting;
    for (const dueAt of this.#dueAt.values()) if (this.#recorder.measures(dueAt)) waiting++;
    return waiting;
  }

  park(user: VirtualUser, dueAt: number): void {
    this.#dueAt.set(user, dueAt);
  }

  waitForRow(user: VirtualUser, dueAt: number, now: number): void {
    user.waitingSince ??= now;
    this.#dueAt.set(user, dueAt);
  }

  /** The user has acquired what it waited for. */
  begins(user: VirtualUser, dueAt: number, now: number): void {
    if (user.waitingSince !== null && this.#recorder.measures(dueAt))
      this.#recorder.waitedForRow(now - user.waitingSince);
    user.waitingSince = null;
  }

  leave(user: VirtualUser): void {
    this.#dueAt.delete(user);
  }

  /** Takes all waiting users, in order of arrival, to try again. */
  takeAll(): (readonly [VirtualUser, number])[] {
    const all = [...this.#dueAt];
    this.#dueAt.clear();
    return all;
  }

  /** The plan is over: waiting arrivals were due, and never began. */
  giveUp(now: number): void {
    for (const [user, dueAt] of this.takeAll()) {
      this.begins(user, dueAt, now);
      this.neverBegins(dueAt, now);
    }
  }

  neverBegins(dueAt: number, now: number): void {
    if (!this.#planned || !this.#recorder.measures(dueAt)) return;
    this.#neverBegan++;
    this.#recorder.waited(dueAt, now);
  }
}
