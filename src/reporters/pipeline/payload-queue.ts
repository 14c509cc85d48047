/** Payloads waiting for their back-end: bounded in entries and bytes. A full queue drops and counts the oldest. */

export interface Payload {
  readonly body: Uint8Array;
  /** Points inside, for the counts shown to users. */
  readonly points: number;
  /** Destination at a back-end with several: a path, the key of an object. */
  readonly to?: string | undefined;
}

interface QueueBounds {
  readonly entriesMax: number;
  readonly bytesMax: number;
}

export class PayloadQueue {
  readonly #bounds: QueueBounds;
  #waiting: Payload[] = [];
  #bytes = 0;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the number of points dropped to make room; its own when it exceeds the whole queue. */
  add(payload: Payload): number {
    if (payload.body.length > this.#bounds.bytesMax) return payload.points;
    this.#waiting.push(payload);
    this.#bytes += payload.body.length;
    let dropped = 0;
    while (this.#waiting.length > this.#bounds.entriesMax || this.#bytes > this.#bounds.bytesMax)
      dropped += this.#shift()?.points ?? 0;
    return dropped;
  }

  /** Removes the oldest payload, joined with following ones for the same destination, up to `joinedBytesMax`. */
  take(joinedBytesMax: number): Payload | undefined {
    const first = this.#shift();
    if (first === undefined) return undefined;
    const joined = [first];
    let bytes = first.body.length;
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || next.to !== first.to) break;
      bytes += next.body.length;
      if (bytes > joinedBytesMax) break;
      joined.push(next);
      this.#shift();
    }
    if (joined.length === 1) return first;
    return {
      ...first,
      body: Buffer.concat(joined.map(({ body }) => body)),
      points: joined.reduce((sum, { points }) => sum + points, 0),
    };
  }

  /** Drops everything and returns the number of points. */
  clear(): number {
    const points = this.#waiting.reduce((sum, one) => sum + one.points, 0);
    this.#waiting = [];
    this.#bytes = 0;
    return points;
  }

  #shift(): Payload | undefined {
    const first = this.#waiting.shift();
    this.#bytes -= first?.body.length ?? 0;
    return first;
  }
}
