/** Clock of a plan: begins with the start and stops while the run is paused. */

export class PlanClock {
  /** Before the start no time has passed. */
  #startedAt = Number.POSITIVE_INFINITY;
  #pausedAt = 0;
  #pausedMs = 0;
  paused = false;

  get started(): boolean {
    return this.#startedAt < Number.POSITIVE_INFINITY;
  }

  start(now: number): void {
    this.#startedAt = now;
  }

  /** Milliseconds of plan time at a clock time. */
  planMs(now: number): number {
    const until = this.paused ? this.#pausedAt : now;
    return until - this.#startedAt - this.#pausedMs;
  }

  /** Clock time of a plan time. */
  clockAt(planMs: number): number {
    return this.#startedAt + this.#pausedMs + planMs;
  }

  pause(now: number): void {
    this.#pausedAt = now;
    this.paused = true;
  }

  resume(now: number): void {
    this.#pausedMs += now - this.#pausedAt;
    this.paused = false;
  }

  /** The process was stopped this long, as at a breakpoint: no plan time has passed. */
  stoodStill(ms: number): void {
    this.#pausedMs += ms;
  }
}
