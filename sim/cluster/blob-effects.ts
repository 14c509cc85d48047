/** File effects of managers and gates on a simulated disk; counterpart of `src/nodes/manager/blob-effects.ts`. */

import { assertNever } from "../../src/core/base/assert.ts";
import { BLOB_CHUNK_BYTES_MAX } from "../../src/core/cluster/messages.ts";
import type { AboveEffect, AboveInput } from "../../src/core/cluster/node/above.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { BlobDisk } from "./blob-disk.ts";

type BlobEffect = Extract<
  AboveEffect,
  { kind: "keepBlob" | "readBlob" | "blobGet" | "blobPut" | "pinBlobs" }
>;

interface Upload {
  readonly bytes: Uint8Array;
  offset: number;
}

export class BlobEffects {
  readonly #blobs: BlobDisk;
  readonly #uploads = new Map<string, Upload>();
  #process: LedgerProcess | null = null;

  constructor(blobs: BlobDisk) {
    this.#blobs = blobs;
  }

  /** Sets the process that it belongs to; called once. */
  standsIn(process: LedgerProcess): void {
    this.#process = process;
  }

  /** Resets the state when its process starts. */
  begin(): void {
    this.#blobs.crash();
    this.#uploads.clear();
  }

  onServing(): void {
    this.#later(() => ({ kind: "blobsHeld", hashes: this.#blobs.hashes }));
  }

  run(effect: BlobEffect): void {
    switch (effect.kind) {
      case "keepBlob": {
        const { bytes, hash } = effect;
        this.#keep(hash, bytes, (problem) => {
          if (problem !== null) this.#later(() => ({ kind: "blobNotKept", hash, problem }));
        });
        return;
      }
      case "readBlob": {
        const { hash } = effect;
        this.#later(() => ({ kind: "blobRead", hash, bytes: this.#blobs.read(hash) }));
        return;
      }
      case "blobGet": {
        const { hash, id, offset } = effect;
        this.#later(() => {
          const whole = this.#blobs.read(hash);
          const bytes = whole?.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX) ?? null;
          return { kind: "blobPart", id, total: whole?.length ?? 0, bytes };
        });
        return;
      }
      case "blobPut":
        this.#put(effect);
        return;
      case "pinBlobs":
        // Nothing is dropped here.
        return;
      default:
        assertNever(effect);
    }
  }

  #later(input: () => AboveInput): void {
    const process = this.#process;
    process?.after(this.#blobs.drawSyncMs(), () => process.tell(input()));
  }

  #keep(hash: string, bytes: Uint8Array, done: (problem: string | null) => void): void {
    const process = this.#process;
    const life = process?.life;
    this.#blobs.keep(hash, bytes, (problem) => {
      if (process?.life !== life) return;
      process?.after(0, () => {
        if (problem === null) process.tell({ kind: "blobsHeld", hashes: [hash] });
        done(problem);
      });
    });
  }

  #put({ bytes, hash, id, offset, total }: Extract<AboveEffect, { kind: "blobPut" }>): void {
    const answer = (held: number, problem: string | null): void =>
      this.#later(() => ({ kind: "blobPutDone", id, held, problem }));
    const known = this.#blobs.read(hash);
    if (known !== null) {
      answer(known.length, null);
      return;
    }
    const upload = this.#uploads.get(hash) ?? { bytes: new Uint8Array(total), offset: 0 };
    this.#uploads.set(hash, upload);
    // A chunk that is repeated, or follows a lost one: the sender learns the expected offset.
    if (offset === upload.offset && offset + bytes.length <= upload.bytes.length) {
      upload.bytes.set(bytes, offset);
      upload.offset += bytes.length;
    }
    if (upload.offset < upload.bytes.length) {
      answer(upload.offset, null);
      return;
    }
    this.#uploads.delete(hash);
    this.#keep(hash, upload.bytes, (problem) => answer(problem === null ? total : 0, problem));
  }
}
