/**
 * Messages that a server sends on its own, and calls that wait for them. What nobody waits for is kept
 * for the next who does; beyond the bounds the oldest are dropped and counted.
 */

import type { CarriedCall } from "./connection.ts";

const MESSAGES_MAX = 1_024;
const BYTES_MAX = 16 * 1024 * 1024;

interface Waiting<Message> {
  /** By which it is forgotten. */
  readonly key: object;
  readonly matches: (message: Message) => boolean;
  take(message: Message, bytes: number, now: number): void;
}

export class Inbox<Message extends { readonly data: Uint8Array }> {
  /** Messages that were thrown away because nobody received them in time. */
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

  /** The oldest that matches ends the call at once, else the next to come. */
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

  /** The same for drivers; a promise that is forgotten never ends. */
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

  /** True when it waited here. */
  forget(key: object): boolean {
    const at = this.#waiting.findIndex((waiting) => waiting.key === key);
    if (at >= 0) this.#waiting.splice(at, 1);
    return at >= 0;
  }

  /** Drops what matches: nobody will ask for it any more. */
  drop(matches: (message: Message) => boolean): void {
    for (let at = this.#messages.length - 1; at >= 0; at--) {
      const message = this.#messages[at];
      if (message === undefined || !matches(message)) continue;
      this.#messages.splice(at, 1);
      this.#bytes -= message.data.length;
    }
  }
}
