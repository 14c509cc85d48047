/**
 * Alarms that a peer can cause at will: every one is counted by its code, and one per code and interval
 * is told, so that rubbish from one peer cannot fill the log of another.
 */

const ALARM_EVERY_MS = 10_000;

export class Alarms<Code extends string> {
  readonly #counts = new Map<Code, number>();
  readonly #toldAt = new Map<Code, number>();

  /** True when this one should be told. */
  raise(code: Code, now: number): boolean {
    this.count(code);
    if (now - (this.#toldAt.get(code) ?? Number.NEGATIVE_INFINITY) < ALARM_EVERY_MS) return false;
    this.#toldAt.set(code, now);
    return true;
  }

  count(code: Code): void {
    this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
  }

  get counts(): ReadonlyMap<Code, number> {
    return this.#counts;
  }
}
