/** The dynamic table of HPACK: the last fields sent, newest first, bounded by their size (RFC 7541 §4). */

/** The default of HTTP/2, which needs no setting; also used where a server allows more. */
export const TABLE_BYTES_MAX = 4096;
/** Size of every entry in addition to its text. */
const ENTRY_OVERHEAD_BYTES = 32;
/** Upper bound of entries: no table is larger than TABLE_BYTES_MAX. */
const ENTRIES_MAX = TABLE_BYTES_MAX / ENTRY_OVERHEAD_BYTES;

export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD_BYTES;
}

export class DynamicTable<Entry extends { readonly name: string; readonly value: string }> {
  bytesMax: number;
  bytes = 0;
  /** A ring buffer: a full table evicts its oldest entry with every addition. */
  readonly #entries: (Entry | undefined)[] = [];
  #oldest = 0;
  #length = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  /** Index 0 is the newest. */
  at(index: number): Entry | undefined {
    if (index >= this.#length) return undefined;
    return this.#entries[(this.#oldest + this.#length - 1 - index) % ENTRIES_MAX];
  }

  /** An entry larger than the whole table empties it. */
  add(entry: Entry): void {
    const bytes = fieldBytes(entry.name, entry.value);
    this.#shrink(this.bytesMax - bytes);
    if (bytes > this.bytesMax) return;
    this.#entries[(this.#oldest + this.#length++) % ENTRIES_MAX] = entry;
    this.bytes += bytes;
  }

  resize(bytesMax: number): void {
    this.bytesMax = bytesMax;
    this.#shrink(bytesMax);
  }

  #shrink(bytes: number): void {
    while (this.bytes > bytes && this.#length > 0) {
      const oldest = this.#entries[this.#oldest];
      if (oldest !== undefined) this.bytes -= fieldBytes(oldest.name, oldest.value);
      this.#entries[this.#oldest] = undefined;
      this.#oldest = (this.#oldest + 1) % ENTRIES_MAX;
      this.#length--;
    }
  }
}
