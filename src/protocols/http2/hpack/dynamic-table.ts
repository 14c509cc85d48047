/** The dynamic table of HPACK: the fields sent last, newest first, bounded by their size (RFC 7541 §4). */

/** The default of HTTP/2, so that nothing has to be said; also what we use where a server allows more. */
export const TABLE_BYTES_MAX = 4096;
/** What every entry counts for besides its text. */
const ENTRY_OVERHEAD_BYTES = 32;

export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD_BYTES;
}

export class DynamicTable<Entry extends { readonly name: string; readonly value: string }> {
  bytesMax: number;
  bytes = 0;
  /** Oldest first. */
  #entries: Entry[] = [];

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** The newest is 0. */
  at(index: number): Entry | undefined {
    return this.#entries[this.#entries.length - 1 - index];
  }

  /** One that is larger than the whole table empties it. */
  add(entry: Entry): void {
    const bytes = fieldBytes(entry.name, entry.value);
    this.#shrink(this.bytesMax - bytes);
    if (bytes > this.bytesMax) return;
    this.#entries.push(entry);
    this.bytes += bytes;
  }

  resize(bytesMax: number): void {
    this.bytesMax = bytesMax;
    this.#shrink(bytesMax);
  }

  #shrink(bytes: number): void {
    let gone = 0;
    while (this.bytes > bytes && gone < this.#entries.length) {
      const oldest = this.#entries[gone++];
      if (oldest !== undefined) this.bytes -= fieldBytes(oldest.name, oldest.value);
    }
    if (gone > 0) this.#entries = this.#entries.slice(gone);
  }
}
