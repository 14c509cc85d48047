/**
 * Decompressed bodies that are kept in case somebody looks again. A few kilobytes of gzip can be many
 * megabytes once they are read, so what one core holds of them is bounded: beyond it the oldest are
 * forgotten, and decompressed again if asked for. Those of a virtual user go with its iteration.
 */

import type { SessionKey, SessionState } from "../protocol.ts";

/** What the decompressed bodies of all virtual users of one core take together. */
export const DECODED_BYTES_PER_CORE_MAX = 64 * 1024 * 1024;

/** One decompressed body, as its response holds it. */
export class DecodedBody {
  bytes: Buffer | null = null;
}

const held = new Set<DecodedBody>();
let heldBytes = 0;

/** For tests and for those who want to know: never more than `DECODED_BYTES_PER_CORE_MAX`. */
export function decodedBytesHeld(): number {
  return heldBytes;
}

function forget(body: DecodedBody): void {
  if (!held.delete(body)) return;
  heldBytes -= body.bytes?.length ?? 0;
  body.bytes = null;
}

/** Those of one virtual user; made with the first, because most users never have any. */
export const decodedBodies: SessionKey<DecodedBodies> = {
  name: "decoded bodies",
  create: () => new DecodedBodies(),
};

/** Where the decompressed bodies of a user are found. */
export interface DecodedOwner {
  readonly decoded: DecodedBodies;
}

/** The decompressed bodies of one virtual user. */
export class DecodedBodies implements SessionState {
  #own: DecodedBody[] = [];

  /** Keeps the bytes if there is room for them at all. */
  keep(body: DecodedBody, bytes: Buffer): void {
    if (bytes.length > DECODED_BYTES_PER_CORE_MAX) return;
    for (const oldest of held) {
      if (heldBytes + bytes.length <= DECODED_BYTES_PER_CORE_MAX) break;
      forget(oldest);
    }
    body.bytes = bytes;
    heldBytes += bytes.length;
    held.add(body);
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
