/**
 * Values by the bytes they were decoded from. A member's record travels with every piece of news about it: decoded once
 * and found again by its bytes, it costs a tenth, and all users share one value. So only immutable values may be kept.
 * A part that maps to an occupied slot replaces its content.
 */

export class PartMemory<Value> {
  readonly #places: number;
  readonly #bytesMax: number;
  readonly #parts: (Uint8Array | undefined)[];
  readonly #values: (Value | undefined)[];

  constructor(places: number, bytesMax: number) {
    this.#places = places;
    this.#bytesMax = bytesMax;
    this.#parts = new Array<undefined>(places).fill(undefined);
    this.#values = new Array<undefined>(places).fill(undefined);
  }

  find(bytes: Uint8Array, from: number, to: number): Value | undefined {
    const length = to - from;
    if (length > this.#bytesMax) return undefined;
    const place = this.#place(bytes, from, to);
    const held = this.#parts[place];
    if (held === undefined || held.length !== length) return undefined;
    for (let i = 0; i < length; i++) if (held[i] !== bytes[from + i]) return undefined;
    return this.#values[place];
  }

  keep(bytes: Uint8Array, from: number, to: number, value: Value): void {
    if (to - from > this.#bytesMax) return;
    const place = this.#place(bytes, from, to);
    this.#parts[place] = bytes.slice(from, to);
    this.#values[place] = value;
  }

  #place(bytes: Uint8Array, from: number, to: number): number {
    let hash = to - from;
    for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
    return ((hash ^ (hash >>> 15)) >>> 0) % this.#places;
  }
}
