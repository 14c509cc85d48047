/**
 * Decodes header blocks (RFC 7541). Every block may change the table that both sides share, so a malformed one closes
 * the connection.
 */

import { DynamicTable, fieldBytes, TABLE_BYTES_MAX } from "./dynamic-table.ts";
import { type DecodedField, decodedField, HeaderList } from "./header-list.ts";
import { decodeHuffman } from "./huffman.ts";
import { STATIC_TABLE } from "./static-table.ts";

/** Limits the size that a small block can expand to. */
export const LIST_BYTES_MAX = 64 * 1024;

const STATIC_FIELDS = STATIC_TABLE.map(([name, value]) => decodedField(name, value));
/** Larger than any length in a block. */
const INTEGER_MAX = 2 ** 28;

const NONE: readonly DecodedField[] = [];

/** The block is malformed; later blocks cannot be decoded, either. */
export class HpackError extends Error {}

export class HpackDecoder {
  readonly #table = new DynamicTable<DecodedField>(TABLE_BYTES_MAX);
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;
  /** Last block whose meaning does not depend on its own changes to the table, with its decoded form. */
  #lastBlock: Buffer | null = null;
  #lastList: HeaderList | null = null;
  /** Fields that it adds to the table every time: nginx adds the same fields with every response. */
  #lastAdded: readonly DecodedField[] = NONE;
  /** The current block refers to the table or resizes it. */
  #usesTable = false;

  /** Decodes bytes[from, end). Throws an `HpackError`. */
  decode(bytes: Buffer, from: number, end: number): HeaderList {
    const last = this.#lastBlock;
    if (last !== null && this.#lastList !== null && last.length === end - from) {
      if (last.compare(bytes, from, end) === 0) {
        for (const field of this.#lastAdded) this.#table.add(field);
        return this.#lastList;
      }
    }
    this.#bytes = bytes;
    this.#at = from;
    this.#end = end;
    return this.#decodeBlock(from);
  }

  #decodeBlock(from: number): HeaderList {
    const fields: DecodedField[] = [];
    let size = 0;
    let added: DecodedField[] | null = null;
    this.#usesTable = false;
    while (this.#at < this.#end) {
      const byte = this.#bytes[this.#at] ?? 0;
      if ((byte & 0xe0) === 0x20) {
        if (fields.length > 0) throw new HpackError("a new table size in the middle of a block");
        this.#resize(this.#integer(5));
        added ??= [];
        this.#usesTable = true;
        continue;
      }
      const indexed = byte >= 0x80;
      const kept = !indexed && byte >= 0x40;
      const field = indexed ? this.#field(this.#integer(7)) : this.#literal(kept ? 6 : 4);
      if (kept) {
        this.#table.add(field);
        added ??= [];
        added.push(field);
      }
      size += fieldBytes(field.name, field.value);
      if (size > LIST_BYTES_MAX)
        throw new HpackError(`headers of more than ${LIST_BYTES_MAX} bytes`);
      fields.push(field);
    }
    const list = new HeaderList(fields);
    const repeats = added === null || !this.#usesTable;
    this.#lastList = repeats ? list : null;
    this.#lastBlock = repeats ? Buffer.from(this.#bytes.subarray(from, this.#end)) : null;
    this.#lastAdded = added ?? NONE;
    return list;
  }

  #resize(bytesMax: number): void {
    if (bytesMax > TABLE_BYTES_MAX) throw new HpackError("a larger table than we allow");
    this.#table.resize(bytesMax);
  }

  #field(index: number): DecodedField {
    this.#usesTable ||= index > STATIC_FIELDS.length;
    const field =
      index <= STATIC_FIELDS.length
        ? STATIC_FIELDS[index - 1]
        : this.#table.at(index - STATIC_FIELDS.length - 1);
    if (field === undefined) throw new HpackError(`no field has the number ${index}`);
    return field;
  }

  #literal(prefixBits: number): DecodedField {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#field(index).name;
    return decodedField(name, this.#string());
  }

  #integer(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1;
    let value = this.#next() & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#next();
      value += (byte & 0x7f) * 2 ** shift;
      if (value > INTEGER_MAX || shift > 28) throw new HpackError("a number that is too large");
      if (byte < 0x80) return value;
    }
  }

  #next(): number {
    if (this.#at >= this.#end) throw new HpackError("a block that ends too early");
    return this.#bytes[this.#at++] ?? 0;
  }

  #string(): string {
    const huffman = ((this.#bytes[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const from = this.#at;
    const end = from + length;
    if (end > this.#end) throw new HpackError("a block that ends too early");
    this.#at = end;
    if (!huffman) return this.#bytes.toString("latin1", from, end);
    const text = decodeHuffman(this.#bytes, from, end);
    if (text === null) throw new HpackError("a string with an invalid Huffman code");
    return text;
  }
}
