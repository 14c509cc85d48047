/**
 * Messages that a server pushes, and calls that wait for them. Unread messages are kept for the next receiver; beyond
 * the limits the oldest are dropped and counted.
 */

import type { CarriedCall } from "./connection.ts";

const MESSAGES_MAX = 1_024;
const BYTES_MAX = 16 * 1024 * 1024;

interface Waiting<Message> {
  /** Identifies the waiting call for `forget`. */
  readonly key: object;
  readonly matches: (message: Message) => boolean;
  take(message: Message, bytes: number, now: number): void;
}

export class Inbox<Message extends { readonly data: Uint8Array }> {
  /** Messages that were dropped because they were not received in time. */
  dropped = 0;
  readonly #messages: Message[] = [];
  #bytes = 0;
  readonly #waiting: Waiting<Message>[] = [];

  arrived(message: Message, bytes: number, now: number): void {
    const at = this.#waiting.findIndex(({ matches }) => matches(message));
    const [first] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (first !== undefined) {
      first.take(message, bytes, now);
      return;
    }
    this.#messages.push(message);
    this.#bytes += message.data.length;
    while (this.#messages.length > MESSAGES_MAX || this.#bytes > BYTES_MAX) {
      this.#bytes -= this.#messages.shift()?.data.length ?? 0;
      this.dropped++;
    }
  }

  /** Finishes the call with the oldest unread message that matches, else with the next to arrive. */
  receive(call: CarriedCall<unknown>, matches: (message: Message) => boolean, now: number): void {
    const message = this.#taken(matches);
    if (message !== undefined) {
      call.answered(message, now);
      return;
    }
    const take = (next: Message, bytes: number, at: number): void => {
      call.read(bytes, at);
      call.answered(next, at);
    };
    this.#waiting.push({ key: call, matches, take });
  }

  /** The same for drivers; a forgotten promise never settles. */
  next(key: object, matches: (message: Message) => boolean): Promise<Message> {
    const message = this.#taken(matches);
    if (message !== undefined) return Promise.resolve(message);
    return new Promise((resolve) => this.#waiting.push({ key, matches, take: resolve }));
  }

  #taken(matches: (message: Message) => boolean): Message | undefined {
    const at = this.#messages.findIndex(matches);
    const [message] = at < 0 ? [] : this.#messages.splice(at, 1);
    this.#bytes -= message?.data.length ?? 0;
    return message;
  }

  /** Returns true when it was waiting here. */
  forget(key: object): boolean {
    const at = this.#waiting.findIndex((waiting) => waiting.key === key);
    if (at >= 0) this.#waiting.splice(at, 1);
    return at >= 0;
  }

  /** Drops matching messages that can no longer be received. */
  drop(matches: (message: Message) => boolean): void {
    for (let at = this.#messages.length - 1; at >= 0; at--) {
      const message = this.#messages[at];
      if (message === undefined || !matches(message)) continue;
      this.#messages.splice(at, 1);
      this.#bytes -= message.data.length;
    }
  }
}
