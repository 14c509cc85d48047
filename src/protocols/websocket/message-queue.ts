/** Unread messages. Bounded: beyond the limit, the oldest are dropped and counted. */

import { QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX } from "./limits.ts";
import type { Matcher, WebsocketMessage } from "./message.ts";

export class MessageQueue {
  dropped = 0;
  readonly #messages: WebsocketMessage[] = [];
  #bytes = 0;

  get size(): number {
    return this.#messages.length;
  }

  add(message: WebsocketMessage): void {
    this.#messages.push(message);
    this.#bytes += message.bytes.length;
    while (this.#messages.length > QUEUE_MESSAGES_MAX || this.#bytes > QUEUE_BYTES_MAX) {
      this.#bytes -= this.#messages.shift()?.bytes.length ?? 0;
      this.dropped++;
    }
  }

  /** Returns the oldest message that matches; null when there is none. */
  take(matches: Matcher | null): WebsocketMessage | null {
    const at = matches === null ? 0 : this.#messages.findIndex(matches);
    if (at < 0 || at >= this.#messages.length) return null;
    const [message] = this.#messages.splice(at, 1);
    this.#bytes -= message?.bytes.length ?? 0;
    return message ?? null;
  }
}
