/**
 * What was handed to the log and is not safe yet. When the disk falls this far behind, clients are told to
 * retry and peers are not heard: memory is bounded, and replication repeats what it needs.
 */

/** More than the log's own queue holds. */
const RECORDS_MAX = 60_000;
const BYTES_MAX = 64 * 1_048_576;

interface Turn {
  /** Records up to the end of this turn, since the start of the process. */
  readonly count: number;
  readonly bytes: number;
}

export class Undurable {
  /** One entry per turn with records, the oldest first. */
  readonly #turns: Turn[] = [];
  #first = 0;
  #count = 0;
  #durable = 0;
  #bytes = 0;

  get isTooMuch(): boolean {
    return this.#count - this.#durable > RECORDS_MAX || this.#bytes > BYTES_MAX;
  }

  onAppended(records: number, bytes: number): void {
    this.#count += records;
    this.#bytes += bytes;
    this.#turns.push({ count: this.#count, bytes });
  }

  onDurable(count: number): void {
    this.#durable = Math.max(this.#durable, count);
    for (;;) {
      const turn = this.#turns[this.#first];
      if (turn === undefined || turn.count > count) break;
      this.#bytes -= turn.bytes;
      this.#first++;
    }
    if (this.#first < 1_024 && this.#first < this.#turns.length) return;
    this.#turns.splice(0, this.#first);
    this.#first = 0;
  }
}
