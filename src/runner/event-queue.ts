/** Events of a run for its reader: bounded, and the run never waits. */

/** Unread lines are kept up to this; then the oldest are dropped. */
const MESSAGES_MAX = 1_000;

export class EventQueue<Live, Other> {
  #live: Live | undefined;
  #others: Other[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #error: unknown;

  /** Replaces a live summary that was not read. */
  live(event: Live): void {
    this.#live = event;
    this.#wake?.();
  }

  push(event: Other): void {
    this.#others.push(event);
    if (this.#others.length > MESSAGES_MAX) this.#others.shift();
    this.#wake?.();
  }

  end(error?: unknown): void {
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }

  async *events(): AsyncGenerator<Live | Other, void> {
    for (;;) {
      const other = this.#others.shift();
      const next = other ?? this.#live;
      if (other === undefined) this.#live = undefined;
      if (next !== undefined) yield next;
      else if (this.#ended) break;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
    if (this.#error !== undefined) throw this.#error;
  }
}
