/**
 * Records by key in few, large byte arrays. A JavaScript object per entry would cost two to four times its content and
 * give the collector a million objects to trace; here an entry costs its bytes, eight bytes of header and about twenty
 * of index.
 *
 *     index: hash -> slot      columns: slot -> address, hash      chunks: address -> header | key | body
 *
 * Slots are small dense numbers, stable while the entry exists; callers that need more per entry (a time, a link in a
 * list) keep their own columns by slot. Records fill chunks like a log. Dropped ones leave holes, and a chunk with too
 * many is emptied into the newest one; entries with equal lifetimes expire together, so that is rare.
 *
 * The hash is seeded, so that clients cannot choose keys that collide. Nothing observable depends on it.
 */

import { assert } from "../../base/assert.ts";

const CHUNK_BITS = 15;
const CHUNK_BYTES = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_BYTES - 1;
/** Slot (4), length of the key (2), of the body (2). */
const HEADER_BYTES = 8;
/** A chunk wastes at most a quarter at its end. */
export const RECORD_BYTES_MAX = CHUNK_BYTES / 4;
/** Live bytes below this: the chunk is emptied. Moving costs three bytes per byte won, at worst. */
const CHUNK_LIVE_BYTES_MIN = (CHUNK_BYTES * 3) / 4;
const FREE = 0xffff_ffff;
const SLOTS_FIRST = 16;
/** Addresses have 32 bits. */
const CHUNKS_MAX = 2 ** 32 / CHUNK_BYTES;

interface Chunk {
  readonly bytes: Uint8Array;
  used: number;
  live: number;
}

export class PackedTable {
  readonly #seed: number;
  /** slot + 1; 0 is empty. Linear probing, a power of two, at most three quarters full. */
  #index = new Int32Array(SLOTS_FIRST * 2);
  #addresses = new Uint32Array(SLOTS_FIRST).fill(FREE);
  /** The key's hash; of a free slot, the next free one + 1. */
  #hashes = new Uint32Array(SLOTS_FIRST);
  #freeSlot = 0;
  #slots = 0;
  #size = 0;
  readonly #chunks: (Chunk | null)[] = [];
  readonly #freeChunks: number[] = [];
  #tail = -1;

  constructor(seed = 0) {
    this.#seed = seed | 0;
  }

  get size(): number {
    return this.#size;
  }

  /** Slots ever handed out at once: columns of this length fit all. */
  get capacity(): number {
    return this.#addresses.length;
  }

  /** Memory of records, index and columns. */
  get bytes(): number {
    const chunks = this.#chunks.length - this.#freeChunks.length;
    return chunks * CHUNK_BYTES + this.#index.byteLength + 8 * this.#addresses.length;
  }

  /** The slot of a key, -1 when absent. */
  find(key: string): number {
    const hash = this.#hash(key);
    const mask = this.#index.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = (this.#index[at] ?? 0) - 1;
      if (slot < 0) return -1;
      if (this.#hashes[slot] === hash && this.#hasKey(slot, key)) return slot;
    }
  }

  /** Keys are ASCII. The caller has seen that the key is absent. */
  insert(key: string, body: Uint8Array): number {
    const hash = this.#hash(key);
    const slot = this.#takeSlot();
    this.#size++;
    this.#hashes[slot] = hash;
    const address = this.#append(slot, key.length, body);
    const bytes = this.#chunkOf(address).bytes;
    const keyAt = (address & CHUNK_MASK) + HEADER_BYTES;
    for (let i = 0; i < key.length; i++) {
      const code = key.charCodeAt(i);
      assert(code < 0x80, "a key is ASCII");
      bytes[keyAt + i] = code;
    }
    this.#addresses[slot] = address;
    if (this.#size * 4 > this.#index.length * 3) this.#grow();
    else this.#enter(hash, slot);
    return slot;
  }

  /** Another body under the same key and slot. */
  replace(slot: number, body: Uint8Array): void {
    const keyLength = this.#keyLength(this.#addressOf(slot));
    const address = this.#append(slot, keyLength, body);
    // Read again: making space may have moved the old record.
    const old = this.#addressOf(slot);
    const from = this.#chunkOf(old).bytes;
    const keyAt = (old & CHUNK_MASK) + HEADER_BYTES;
    const to = (address & CHUNK_MASK) + HEADER_BYTES;
    this.#chunkOf(address).bytes.set(from.subarray(keyAt, keyAt + keyLength), to);
    this.#addresses[slot] = address;
    this.#drop(old);
  }

  remove(slot: number): void {
    const address = this.#addressOf(slot);
    this.#leave(slot);
    this.#addresses[slot] = FREE;
    this.#hashes[slot] = this.#freeSlot;
    this.#freeSlot = slot + 1;
    this.#size--;
    this.#drop(address);
  }

  /** A view that holds until the next change of the table. */
  body(slot: number): Uint8Array {
    const address = this.#addressOf(slot);
    const bytes = this.#chunkOf(address).bytes;
    const at = address & CHUNK_MASK;
    const bodyAt = at + HEADER_BYTES + read16(bytes, at + 4);
    return bytes.subarray(bodyAt, bodyAt + read16(bytes, at + 6));
  }

  /** A view, like `body`. */
  keyBytes(slot: number): Uint8Array {
    const address = this.#addressOf(slot);
    const at = (address & CHUNK_MASK) + HEADER_BYTES;
    return this.#chunkOf(address).bytes.subarray(at, at + this.#keyLength(address));
  }

  #addressOf(slot: number): number {
    const address = this.#addresses[slot] ?? FREE;
    assert(address !== FREE, "a slot in use has an address");
    return address;
  }

  #chunkOf(address: number): Chunk {
    const chunk = this.#chunks[address >>> CHUNK_BITS];
    assert(chunk !== undefined && chunk !== null, "an address lies in a chunk");
    return chunk;
  }

  #keyLength(address: number): number {
    const at = (address & CHUNK_MASK) + 4;
    return read16(this.#chunkOf(address).bytes, at);
  }

  #bodyLength(address: number): number {
    const at = (address & CHUNK_MASK) + 6;
    return read16(this.#chunkOf(address).bytes, at);
  }

  #hasKey(slot: number, key: string): boolean {
    const address = this.#addresses[slot] ?? FREE;
    const bytes = this.#chunkOf(address).bytes;
    const at = address & CHUNK_MASK;
    if (read16(bytes, at + 4) !== key.length) return false;
    const keyAt = at + HEADER_BYTES;
    // From the end: keys of one client differ in the sequence, not in the name.
    for (let i = key.length - 1; i >= 0; i--) {
      if (bytes[keyAt + i] !== key.charCodeAt(i)) return false;
    }
    return true;
  }

  /** Allocates a record with its header and body written; the caller writes the key. */
  #append(slot: number, keyLength: number, body: Uint8Array): number {
    const size = HEADER_BYTES + keyLength + body.length;
    assert(size <= RECORD_BYTES_MAX, "a record is within its bound");
    let chunk = this.#chunks[this.#tail] ?? null;
    if (chunk === null || chunk.used + size > CHUNK_BYTES) {
      const full = this.#tail;
      this.#tail = this.#freeChunks.pop() ?? this.#chunks.length;
      assert(this.#tail < CHUNKS_MAX, "addresses have 32 bits");
      chunk = { bytes: new Uint8Array(CHUNK_BYTES), used: 0, live: 0 };
      this.#chunks[this.#tail] = chunk;
      if (full >= 0) this.#reviewSealed(full);
      return this.#append(slot, keyLength, body);
    }
    const at = chunk.used;
    write32(chunk.bytes, at, slot);
    write16(chunk.bytes, at + 4, keyLength);
    write16(chunk.bytes, at + 6, body.length);
    chunk.bytes.set(body, at + HEADER_BYTES + keyLength);
    chunk.used += size;
    chunk.live += size;
    return this.#tail * CHUNK_BYTES + at;
  }

  #drop(address: number): void {
    const number = address >>> CHUNK_BITS;
    const chunk = this.#chunkOf(address);
    chunk.live -= HEADER_BYTES + this.#keyLength(address) + this.#bodyLength(address);
    assert(chunk.live >= 0, "a chunk holds no less than nothing");
    if (number !== this.#tail) this.#reviewSealed(number);
  }

  /** Empties a chunk that is mostly holes. */
  #reviewSealed(number: number): void {
    const chunk = this.#chunks[number] ?? null;
    if (chunk === null || chunk.live >= CHUNK_LIVE_BYTES_MIN) return;
    // Taken out first: moving its records may seal the tail and come back here for another chunk.
    this.#chunks[number] = null;
    for (let at = 0; at < chunk.used && chunk.live > 0; ) {
      const slot = read32(chunk.bytes, at);
      const keyLength = read16(chunk.bytes, at + 4);
      const size = HEADER_BYTES + keyLength + read16(chunk.bytes, at + 6);
      if (this.#addresses[slot] === number * CHUNK_BYTES + at) {
        const keyAt = at + HEADER_BYTES;
        const body = chunk.bytes.subarray(keyAt + keyLength, at + size);
        const address = this.#append(slot, keyLength, body);
        const to = (address & CHUNK_MASK) + HEADER_BYTES;
        this.#chunkOf(address).bytes.set(chunk.bytes.subarray(keyAt, keyAt + keyLength), to);
        this.#addresses[slot] = address;
        chunk.live -= size;
      }
      at += size;
    }
    assert(chunk.live === 0, "all live records of an emptied chunk were moved");
    this.#freeChunks.push(number);
  }

  #takeSlot(): number {
    if (this.#freeSlot > 0) {
      const slot = this.#freeSlot - 1;
      this.#freeSlot = this.#hashes[slot] ?? 0;
      return slot;
    }
    if (this.#slots === this.#addresses.length) {
      const capacity = grownCapacity(this.#slots);
      const addresses = new Uint32Array(capacity).fill(FREE, this.#slots);
      addresses.set(this.#addresses);
      this.#addresses = addresses;
      this.#hashes = grownColumn(this.#hashes, capacity, new Uint32Array(capacity));
    }
    return this.#slots++;
  }

  #enter(hash: number, slot: number): void {
    const mask = this.#index.length - 1;
    let at = hash & mask;
    while (this.#index[at] !== 0) at = (at + 1) & mask;
    this.#index[at] = slot + 1;
  }

  /** Removes a slot from the index and closes the gap: later ones of the run move back, no tombstones. */
  #leave(slot: number): void {
    const index = this.#index;
    const mask = index.length - 1;
    let gap = (this.#hashes[slot] ?? 0) & mask;
    while (index[gap] !== slot + 1) gap = (gap + 1) & mask;
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const moved = index[at] ?? 0;
      if (moved === 0) break;
      const home = (this.#hashes[moved - 1] ?? 0) & mask;
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      index[gap] = moved;
      gap = at;
    }
    index[gap] = 0;
  }

  #grow(): void {
    this.#index = new Int32Array(this.#index.length * 2);
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#addresses[slot] !== FREE) this.#enter(this.#hashes[slot] ?? 0, slot);
    }
  }

  #hash(key: string): number {
    let hash = this.#seed;
    for (let i = 0; i < key.length; i++) {
      hash = Math.imul(hash ^ key.charCodeAt(i), 0xcc9e2d51);
      hash = (hash << 13) | (hash >>> 19);
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}

/** Half as much again: a column is never more than a third empty. */
export function grownCapacity(capacity: number): number {
  return Math.max(SLOTS_FIRST, capacity + (capacity >> 1));
}

/** A longer copy of a column. `fresh` is the new array, zeroed. */
export function grownColumn<Column extends Int32Array | Uint32Array | Float64Array | Uint8Array>(
  column: Column,
  capacity: number,
  fresh: Column,
): Column {
  assert(fresh.length === capacity && capacity >= column.length, "columns only grow");
  fresh.set(column);
  return fresh;
}

function read16(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
}

function read32(bytes: Uint8Array, at: number): number {
  return (read16(bytes, at) | (read16(bytes, at + 2) << 16)) >>> 0;
}

function write16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff;
  bytes[at + 1] = value >>> 8;
}

function write32(bytes: Uint8Array, at: number, value: number): void {
  write16(bytes, at, value & 0xffff);
  write16(bytes, at + 2, value >>> 16);
}
