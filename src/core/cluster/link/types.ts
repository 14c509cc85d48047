/**
 * What the links of a process hear and ask for. The driver only moves bytes: it opens, writes and closes
 * streams by their numbers, and tells what happened to them.
 *
 * Streams are numbered as in HTTP/2: those we dial have even numbers, given here; those we accept have odd
 * ones, given by the driver. A number is never used twice in a process.
 */

import type { Brand } from "../../base/brand.ts";
import type { Address } from "../../base/ids.ts";

export type StreamId = Brand<number, "StreamId">;

/** What the network says of the other end. */
export interface StreamFacts {
  /** Without its port. */
  readonly host: string;
  /** Alternative names (URIs) of the peer's verified certificate; null without mutual TLS. */
  readonly peerUris: readonly string[] | null;
}

export type LinkInput =
  | { readonly kind: "opened"; readonly stream: StreamId; readonly facts: StreamFacts }
  /** `refused`: the host lives and nobody listens there. */
  | { readonly kind: "dialFailed"; readonly stream: StreamId; readonly refused: boolean }
  | { readonly kind: "bytes"; readonly stream: StreamId; readonly bytes: Uint8Array }
  /** The network has taken what was written up to the mark. */
  | { readonly kind: "drained"; readonly stream: StreamId; readonly mark: number }
  /** `isReset`: by the network, as far as is known; else by the machine of the other end. */
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
      /** With a mark, tell `drained` with it once the network has taken these bytes. */
      readonly mark: number | null;
    }
  /** The peer has shown that it holds the key: its connection is not closed to make room. */
  | { readonly kind: "prove"; readonly stream: StreamId }
  /** Sends what was written, then ends. */
  | { readonly kind: "end"; readonly stream: StreamId }
  /** Ends now. */
  | { readonly kind: "destroy"; readonly stream: StreamId };
