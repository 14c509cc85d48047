/**
 * Inputs and effects of the links of a process. The driver only moves bytes: it opens, writes and closes streams by
 * number, and reports what happened to them.
 *
 * Streams are numbered as in HTTP/2: dialled ones have even numbers, assigned here; accepted ones have odd numbers,
 * assigned by the driver. A process never reuses a number.
 */

import type { Brand } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";

export type StreamId = Brand<number, "StreamId">;

/** Network facts about the other end. */
export interface StreamFacts {
  /** Host without port. */
  readonly host: string;
  /** Alternative names (URIs) of the peer's verified certificate; null without mutual TLS. */
  readonly peerUris: readonly string[] | null;
}

export type LinkInput =
  | { readonly kind: "opened"; readonly stream: StreamId; readonly facts: StreamFacts }
  /** `refused`: the host is alive but nothing listens there. */
  | { readonly kind: "dialFailed"; readonly stream: StreamId; readonly refused: boolean }
  | { readonly kind: "bytes"; readonly stream: StreamId; readonly bytes: Uint8Array }
  /** The network has accepted everything written up to the mark. */
  | { readonly kind: "drained"; readonly stream: StreamId; readonly mark: number }
  /** `isReset`: closed by the network, as far as known; otherwise by the host of the other end. */
  | { readonly kind: "closed"; readonly stream: StreamId; readonly isReset?: boolean };

export type LinkEffect =
  | {
      readonly kind: "dial";
      readonly stream: StreamId;
      readonly to: Address;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: "write";
      readonly stream: StreamId;
      readonly bytes: Uint8Array;
      /** With a mark, report `drained` with it once the network has accepted these bytes. */
      readonly mark: number | null;
    }
  /** The peer has proved that it has the key, so its connection is not evicted to free a slot. */
  | { readonly kind: "prove"; readonly stream: StreamId }
  /** Flushes pending writes, then closes. */
  | { readonly kind: "end"; readonly stream: StreamId }
  /** Closes immediately. */
  | { readonly kind: "destroy"; readonly stream: StreamId };
