/**
 * Caches decompressed bodies in case they are read again. A few kilobytes of gzip can become many megabytes, so the
 * total per core is bounded: beyond it, the oldest are evicted and decompressed again on access. Those of a virtual
 * user are dropped at the end of its iteration.
 */

import type { SessionKey, SessionState } from "../protocol.ts";

/** Total size of decompressed bodies of all virtual users of one core. */
export const DECODED_BYTES_PER_CORE_MAX = 64 * 1024 * 1024;

/** One decompressed body; its response refers to it. */
export class DecodedBody {
  bytes: Buffer | null = null;
}

const cached = new Set<DecodedBody>();
let cachedBytes = 0;

/** Currently cached bytes, for tests and diagnostics; never more than `DECODED_BYTES_PER_CORE_MAX`. */
export function decodedBytesCached(): number {
  return cachedBytes;
}

function forget(body: DecodedBody): void {
  if (!cached.delete(body)) return;
  cachedBytes -= body.bytes?.length ?? 0;
  body.bytes = null;
}

/** Bodies of one virtual user; created with the first, because most users never have any. */
export const decodedBodies: SessionKey<DecodedBodies> = {
  name: "decoded bodies",
  create: () => new DecodedBodies(),
};

/** Gives access to the decompressed bodies of a user. */
export interface DecodedOwner {
  readonly decoded: DecodedBodies;
}

/** Decompressed bodies of one virtual user. */
export class DecodedBodies implements SessionState {
  #own: DecodedBody[] = [];

  /** Caches the bytes unless they exceed the limit on their own. */
  keep(body: DecodedBody, bytes: Buffer): void {
    if (bytes.length > DECODED_BYTES_PER_CORE_MAX) return;
    for (const oldest of cached) {
      if (cachedBytes + bytes.length <= DECODED_BYTES_PER_CORE_MAX) break;
      forget(oldest);
    }
    body.bytes = bytes;
    cachedBytes += bytes.length;
    cached.add(body);
    this.#own.push(body);
  }

  reset(): void {
    for (const body of this.#own) forget(body);
    this.#own = [];
  }

  close(): void {
    this.reset();
  }
}
