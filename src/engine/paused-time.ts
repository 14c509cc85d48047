/** Declared pauses, with overlapping ones counted once. */
export class PausedTime {
  #ms = 0;
  /** When the last of them ends. */
  #until = 0;

  begin(now: number): void {
    this.#ms = 0;
    this.#until = now;
  }

  pause(ms: number, now: number): void {
    if (!(ms > 0) || now + ms <= this.#until) return;
    this.#ms += now + ms - Math.max(now, this.#until);
    this.#until = now + ms;
  }

  /** Up to now. */
  upTo(now: number): number {
    return this.#ms - Math.max(0, this.#until - now);
  }
}
