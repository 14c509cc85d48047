/**
 * Uploads of blobs to this manager, from clients and other managers: written part by part, kept if their hash matches.
 * The sender learns the current offset of a blob and continues from there.
 */

import { errorText } from "../../core/base/error-text.ts";
import { BLOB_BYTES_MAX } from "../../core/cluster/messages.ts";
import type { BlobStore, IncomingBlob } from "../../host/blob-store.ts";

/** Concurrent uploads; the one that has waited longest for its next part is evicted. */
const UNDER_WAY_MAX = 256;

interface Put {
  readonly hash: string;
  readonly offset: number;
  readonly total: number;
  readonly bytes: Uint8Array;
}

interface PutAnswer {
  /** Up to where it is here: where the next part begins. */
  readonly held: number;
  readonly problem: string | null;
  /** Whether this part completed the blob. */
  readonly complete: boolean;
}

export class Uploads {
  readonly #store: BlobStore;
  /** The longest without a part first. */
  readonly #underWay = new Map<string, IncomingBlob>();
  /** The last part of each blob: parts are written one after the other, from any sender. */
  readonly #last = new Map<string, Promise<PutAnswer>>();

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** Never rejects. */
  put(part: Put): Promise<PutAnswer> {
    const { hash } = part;
    const before = this.#last.get(hash) ?? Promise.resolve();
    const next = before
      .then(() => this.#put(part))
      .catch((error: unknown) => this.#failed(hash, errorText(error)));
    this.#last.set(hash, next);
    return next.finally(() => {
      if (this.#last.get(hash) === next) this.#last.delete(hash);
    });
  }

  async #put({ bytes, hash, offset, total }: Put): Promise<PutAnswer> {
    const known = this.#store.bytesOf(hash);
    if (known !== null) return { held: known, problem: null, complete: false };
    if (total > BLOB_BYTES_MAX) return refused(`a file of ${total} bytes is too large`);
    const upload = this.#underWay.get(hash) ?? (await this.#store.begin(hash, total));
    if (typeof upload === "string") return refused(upload);
    this.#underWay.delete(hash);
    this.#underWay.set(hash, upload);
    await this.#dropOldest();
    // A repeated part, or one after a lost part: the sender learns where to continue.
    if (offset !== upload.offset || offset + bytes.length > upload.total)
      return { held: upload.offset, problem: null, complete: false };
    await upload.append(bytes);
    if (upload.offset < upload.total)
      return { held: upload.offset, problem: null, complete: false };
    this.#underWay.delete(hash);
    const problem = await upload.finish();
    return problem === null ? { held: total, problem, complete: true } : refused(problem);
  }

  async #dropOldest(): Promise<void> {
    const [oldest] = this.#underWay;
    if (this.#underWay.size <= UNDER_WAY_MAX || oldest === undefined) return;
    const [hash, upload] = oldest;
    this.#underWay.delete(hash);
    await upload.drop();
  }

  async #failed(hash: string, problem: string): Promise<PutAnswer> {
    const upload = this.#underWay.get(hash);
    this.#underWay.delete(hash);
    await upload?.drop().catch(() => undefined);
    return refused(`cannot be kept: ${problem}`);
  }
}

function refused(problem: string): PutAnswer {
  return { held: 0, problem, complete: false };
}
