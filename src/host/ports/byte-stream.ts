/** Reliable byte streams between addresses: the common part of TCP and TLS. */

import type { Address } from "../../core/base/ids.ts";

export interface ByteStream {
  /** The other end's host, without its port. */
  readonly host: string;
  /** Alternative names (URIs) of the peer's verified certificate; null without mutual TLS. */
  readonly peerUris: readonly string[] | null;
  /** Bytes written and not yet accepted by the network. */
  readonly backlogBytes: number;
  /** The peer has proven that it has the key: its connection is not closed to make room. */
  prove(): void;
  /** `onTaken` is called once the network has accepted these bytes. */
  write(bytes: Uint8Array, onTaken?: () => void): void;
  /** Sends what was written, then closes. */
  end(): void;
  /** Closes now. */
  destroy(): void;
  onData(handler: (bytes: Uint8Array) => void): void;
  /** `isReset`: closed without notice of the other end. */
  onClose(handler: (isReset: boolean) => void): void;
}

export type DialProblem = "refused" | "failed";

export interface ByteStreamPort {
  dial(
    to: Address,
    timeoutMs: number,
    done: (stream: ByteStream | null, problem: DialProblem | null) => void,
  ): void;
  onAccept(handler: (stream: ByteStream) => void): void;
}
