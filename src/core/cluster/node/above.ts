/** Inputs and effects of the application on a ledger node (gate or manager), in addition to those of the ledger. */

import type { ManagerEffect, ManagerInput } from "../manager/types.ts";
import type { BlobHash } from "../messages.ts";
import type { PressureSample } from "../overload/request-guard.ts";

/** In addition to the inputs of the ledger. */
export type AboveInput =
  /** Periodic sample of the load on this process. */
  | ({ readonly kind: "pressure" } & PressureSample)
  | Extract<ManagerInput, { kind: "blobRead" | "blobNotKept" }>
  /** Blobs that are complete and durable here: all of them at the start, then each new one. */
  | { readonly kind: "blobsHeld"; readonly hashes: readonly BlobHash[] }
  /** Blobs dropped to free space. */
  | { readonly kind: "blobsGone"; readonly hashes: readonly BlobHash[] }
  /** Answer to `blobGet`; null bytes if the blob is not here. */
  | {
      readonly kind: "blobPart";
      readonly id: number;
      readonly total: number;
      readonly bytes: Uint8Array | null;
    }
  /** Answer to `blobPut`: bytes stored so far, or the reason why it is rejected. */
  | {
      readonly kind: "blobPutDone";
      readonly id: number;
      readonly held: number;
      readonly problem: string | null;
    };

/** In addition to the effects of the ledger. */
export type AboveEffect =
  /** `keepBlob` is answered with `blobsHeld` or `blobNotKept`. */
  | Extract<ManagerEffect, { kind: "keepBlob" | "readBlob" | "pinBlobs" }>
  | {
      readonly kind: "blobGet";
      readonly id: number;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  | {
      readonly kind: "blobPut";
      readonly id: number;
      readonly hash: BlobHash;
      readonly offset: number;
      readonly total: number;
      readonly bytes: Uint8Array;
    };
