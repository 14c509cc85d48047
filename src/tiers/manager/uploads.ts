/** Blobs on their way to this manager: put together in memory part by part, kept when their hash is right. */

import type { BlobStore } from "../../host/blob-store.ts";

/** Of one blob, and of all that are under way. */
const BLOB_BYTES_MAX = 256 * 1_048_576;
const UNDER_WAY_BYTES_MAX = 512 * 1_048_576;

interface Put {
  readonly hash: string;
  readonly offset: number;
  readonly total: number;
  readonly bytes: Uint8Array;
}

interface Upload {
  readonly bytes: Uint8Array;
  offset: number;
}

interface PutAnswer {
  /** Up to where it is here: where the next part begins. */
  readonly held: number;
  readonly problem: string | null;
  /** It is whole now, and was not before. */
  readonly complete: boolean;
}

export class Uploads {
  readonly #store: BlobStore;
  readonly #underWay = new Map<string, Upload>();
  #bytes = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  async put({ bytes, hash, offset, total }: Put): Promise<PutAnswer> {
    const known = this.#store.bytesOf(hash);
    if (known !== null) return { held: known, problem: null, complete: false };
    if (total > BLOB_BYTES_MAX) return refused(`a file of ${total} bytes is too large`);
    const upload = this.#underWay.get(hash) ?? this.#begin(hash, total);
    // A part that came before, or one after a part that was lost: the sender hears where to go on.
    if (offset !== upload.offset || offset + bytes.length > upload.bytes.length)
      return { held: upload.offset, problem: null, complete: false };
    upload.bytes.set(bytes, offset);
    upload.offset += bytes.length;
    if (upload.offset < upload.bytes.length)
      return { held: upload.offset, problem: null, complete: false };
    this.#forget(hash);
    const problem = await this.#store.keep(hash, upload.bytes);
    return problem === null ? { held: total, problem, complete: true } : refused(problem);
  }

  #begin(hash: string, total: number): Upload {
    const upload = { bytes: new Uint8Array(total), offset: 0 };
    this.#underWay.set(hash, upload);
    this.#bytes += total;
    for (const oldest of this.#underWay.keys()) {
      if (this.#bytes <= UNDER_WAY_BYTES_MAX || oldest === hash) break;
      this.#forget(oldest);
    }
    return upload;
  }

  #forget(hash: string): void {
    this.#bytes -= this.#underWay.get(hash)?.bytes.length ?? 0;
    this.#underWay.delete(hash);
  }
}

function refused(problem: string): PutAnswer {
  return { held: 0, problem, complete: false };
}
