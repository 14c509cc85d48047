/**
 * Payload of a sealed stream frame: a whole message, plain or deflated, or one part of a message too large for a frame.
 * (C20-1, SEC-9)
 *
 *     chunk = 0 · message
 *           | 1 · varint(inflated length) · deflated message
 *           | 2 · varint(transfer) · varint(total length) · varint(offset) · bytes     of a chunk 0 or 1
 *
 * Sizes are declared first and checked before anything is kept; inflation stops at the declared size. Parts of one
 * transfer arrive in order (a stream guarantees it), so a transfer is a list of parts and an offset.
 */

import { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import { carve } from "../core/base/slab.ts";
import type { Compressor } from "../host/ports/compressor.ts";
import {
  CHUNK_BYTES,
  COMPRESS_BYTES_MIN,
  INFLATE_RATIO_MAX,
  INFLATED_BYTES_MAX,
  TRANSFER_BYTES_MAX,
  TRANSFERS_OPEN_MAX,
} from "./limits.ts";

const PLAIN = 0;
const DEFLATED = 1;
const PART = 2;

type Chunked =
  | { readonly ok: true; readonly chunks: readonly Uint8Array[] }
  | { readonly ok: false; readonly problem: string };

type Received =
  | { readonly kind: "message"; readonly bytes: Uint8Array }
  | { readonly kind: "partial" }
  | { readonly kind: "refused"; readonly problem: string };

/** One chunk, or the parts of a large one. `transfer` must differ between open transfers of a connection. */
export function toChunks(
  message: Uint8Array,
  compressor: Compressor | null,
  transfer: number,
): Chunked {
  if (message.length > INFLATED_BYTES_MAX) {
    const problem = `a message of ${message.length} bytes; at most ${INFLATED_BYTES_MAX} are allowed`;
    return { ok: false, problem };
  }
  const whole = wholeChunk(message, compressor);
  if (whole.length <= CHUNK_BYTES) return { ok: true, chunks: [whole] };
  if (whole.length > TRANSFER_BYTES_MAX) {
    const problem = `a transfer of ${whole.length} bytes; at most ${TRANSFER_BYTES_MAX} are allowed`;
    return { ok: false, problem };
  }
  const chunks: Uint8Array[] = [];
  for (let offset = 0; offset < whole.length; offset += CHUNK_BYTES) {
    const out = new ByteWriter(CHUNK_BYTES + 32);
    out.uint8(PART);
    out.varint(transfer);
    out.varint(whole.length);
    out.varint(offset);
    out.raw(whole.subarray(offset, offset + CHUNK_BYTES));
    chunks.push(out.take());
  }
  return { ok: true, chunks };
}

function wholeChunk(message: Uint8Array, compressor: Compressor | null): Uint8Array {
  if (compressor !== null && message.length >= COMPRESS_BYTES_MIN) {
    const deflated = compressor.deflate(message);
    // A message that shrinks beyond the ratio would be rejected as a bomb: send it uncompressed.
    const honest = message.length <= deflated.length * INFLATE_RATIO_MAX;
    if (deflated.length < message.length && honest) {
      const out = new ByteWriter(deflated.length + 16);
      out.uint8(DEFLATED);
      out.varint(message.length);
      out.raw(deflated);
      return out.take();
    }
  }
  const chunk = carve(1 + message.length);
  chunk[0] = PLAIN;
  chunk.set(message, 1);
  return chunk;
}

/** Grows with what arrives: a declared size alone costs nothing. */
interface Transfer {
  readonly total: number;
  readonly parts: Uint8Array[];
  filled: number;
}

/** One per connection. */
export class ChunkReader {
  readonly #compressor: Compressor | null;
  readonly #transfers = new Map<number, Transfer>();

  constructor(compressor: Compressor | null) {
    this.#compressor = compressor;
  }

  /** True while part of a message is here: a stall now is worth a timeout. */
  get midTransfer(): boolean {
    return this.#transfers.size > 0;
  }

  push(chunk: Uint8Array): Received {
    if (chunk[0] !== PART) return this.#open(chunk);
    const from = new ByteReader(chunk.subarray(1));
    const id = from.varint();
    const total = from.varint();
    const offset = from.varint();
    const bytes = from.raw(from.remaining);
    if (from.failed || bytes.length === 0) return refuse("a part is truncated");
    if (total > TRANSFER_BYTES_MAX) {
      return refuse(`a transfer of ${total} bytes; at most ${TRANSFER_BYTES_MAX} are allowed`);
    }
    return this.#addPart(id, total, offset, bytes);
  }

  #addPart(id: number, total: number, offset: number, bytes: Uint8Array): Received {
    let transfer = this.#transfers.get(id);
    if (transfer === undefined) {
      if (offset !== 0) return refuse("a transfer does not begin at its start");
      if (this.#transfers.size >= TRANSFERS_OPEN_MAX) return refuse("too many open transfers");
      transfer = { total, parts: [], filled: 0 };
      this.#transfers.set(id, transfer);
    }
    if (total !== transfer.total || offset !== transfer.filled) {
      return refuse("a part does not continue its transfer");
    }
    if (bytes.length > total - offset) return refuse("a part exceeds its transfer");
    transfer.parts.push(bytes);
    transfer.filled += bytes.length;
    if (transfer.filled < total) return { kind: "partial" };
    this.#transfers.delete(id);
    return this.#open(joined(transfer));
  }

  #open(chunk: Uint8Array): Received {
    if (chunk[0] === PLAIN) return { kind: "message", bytes: chunk.subarray(1) };
    if (chunk[0] !== DEFLATED) return refuse("an unknown kind of chunk");
    const from = new ByteReader(chunk.subarray(1));
    const length = from.varint();
    const deflated = from.raw(from.remaining);
    if (from.failed) return refuse("a chunk is truncated");
    if (length > INFLATED_BYTES_MAX || length > deflated.length * INFLATE_RATIO_MAX) {
      return refuse(`${deflated.length} bytes that inflate to ${length}`);
    }
    if (this.#compressor === null) return refuse("compression was not agreed on");
    const bytes = this.#compressor.inflate(deflated, length);
    if (bytes === null || bytes.length !== length) return refuse("a chunk does not inflate");
    return { kind: "message", bytes };
  }
}

function joined({ total, parts }: Transfer): Uint8Array {
  const whole = new Uint8Array(total);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function refuse(problem: string): Received {
  return { kind: "refused", problem };
}
