/** What stands above a ledger node in its process hears and asks for, beside what the ledger does. */

import type { ManagerEffect, ManagerInput } from "../manager/types.ts";
import type { BlobHash } from "../messages.ts";
import type { PressureSample } from "../overload/request-guard.ts";

/** Beside what the ledger hears. */
export type AboveInput =
  /** How hard-pressed this process is, measured now and then. */
  | ({ readonly kind: "pressure" } & PressureSample)
  | Extract<ManagerInput, { kind: "blobRead" | "blobNotKept" }>
  /** Complete and durable here: all at the start, then each as it comes. */
  | { readonly kind: "blobsHeld"; readonly hashes: readonly BlobHash[] }
  /** Dropped to make room. */
  | { readonly kind: "blobsGone"; readonly hashes: readonly BlobHash[] }
  /** Of `blobGet`: null bytes when it is not here. */
  | {
      readonly kind: "blobPart";
      readonly id: number;
      readonly total: number;
      readonly bytes: Uint8Array | null;
    }
  /** Of `blobPut`: up to where it is here, or why it is not taken. */
  | {
      readonly kind: "blobPutDone";
      readonly id: number;
      readonly held: number;
      readonly problem: string | null;
    };

/** Beside what the ledger asks for. */
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
