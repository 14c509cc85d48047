/** Unreliable packets between addresses. */

import type { Address } from "../../core/base/ids.ts";

export interface DatagramPort {
  /** Never waits; a write error is reported to `onSendFailed`. */
  send(to: Address, bytes: Uint8Array): void;
  onReceive(handler: (source: Address, bytes: Uint8Array) => void): void;
  onSendFailed(handler: (to: Address) => void): void;
}
