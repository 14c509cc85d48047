/**
 * Alarms that a peer can cause at will: each is counted by its code, and one per code and interval is reported, so that
 * garbage from one peer cannot fill the log of another.
 */

const ALARM_EVERY_MS = 10_000;

export class Alarms<Code extends string> {
  readonly #counts = new Map<Code, number>();
  readonly #reportedAt = new Map<Code, number>();

  /** Whether this one should be reported. */
  raise(code: Code, now: number): boolean {
    this.count(code);
    if (now - (this.#reportedAt.get(code) ?? Number.NEGATIVE_INFINITY) < ALARM_EVERY_MS)
      return false;
    this.#reportedAt.set(code, now);
    return true;
  }

  count(code: Code): void {
    this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
  }

  get counts(): ReadonlyMap<Code, number> {
    return this.#counts;
  }
}
