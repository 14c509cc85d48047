/** One request and one reply over a reliable connection, whole or failed. */

import type { Address } from "../../core/base/ids.ts";

export interface StreamPort {
  /** `done` is called exactly once: with the reply, or with null when anything went wrong or took too long. */
  exchange(
    to: Address,
    request: Uint8Array,
    timeoutMs: number,
    done: (reply: Uint8Array | null) => void,
  ): void;
  /** Requests of others; `answer` sends at most one reply. */
  onRequest(handler: (request: Uint8Array, answer: (reply: Uint8Array) => void) => void): void;
}
