/**
 * One-way messages over kept connections: one bounded queue and one connection per destination, the most
 * urgent first. A slow peer fills its own queue and nobody else's. (AD-32, OUT-1..7)
 */

import type { Address } from "../../core/base/ids.ts";
import type { Connection } from "../../host/connection.ts";
import { Outbox, type OutboxState, type OutboxStats } from "../../wire/outbox.ts";
import { encodeStreamMessage, MESSAGES, type StreamEnvelope } from "../../wire/registry.ts";

/** Opens a connection; `onReady` and `onEnd` are each called at most once. */
export type Dial = (
  to: Address,
  handlers: {
    readonly onReady: (connection: Connection) => void;
    readonly onEnd: (problem: string) => void;
  },
) => void;

export interface Posted {
  readonly accepted: boolean;
  readonly state: OutboxState;
  /** What the caller should wait before it posts to the same destination again. */
  readonly delayMs: number;
}

interface Letter {
  readonly bytes: Uint8Array;
  readonly done: (problem: string | null) => void;
}

/** Handed to the socket and not yet taken: enough to keep the network busy, little enough to re-order. */
const IN_HAND_BYTES_MAX = 262_144;
const PUMP_MS = 5;

export class Sender {
  readonly #dial: Dial;
  readonly #outbox = new Outbox<Letter>();
  /** Null while the connection is being made. */
  readonly #connections = new Map<Address, Connection | null>();
  readonly #pumps = new Map<Address, NodeJS.Timeout>();
  #stopped = false;

  constructor(dial: Dial) {
    this.#dial = dial;
  }

  /** `done` is called once: with null when the message was handed to the network, else with a reason. */
  post(to: Address, message: StreamEnvelope, done: (problem: string | null) => void): Posted {
    if (this.#stopped) {
      done("stopped");
      return { accepted: false, state: "saturated", delayMs: 0 };
    }
    const letter = { bytes: encodeStreamMessage(message), done };
    const { priority } = MESSAGES[message.name];
    const { accepted, state, delayMs, dropped } = this.#outbox.enqueue(to, letter, priority);
    for (const lost of dropped) lost.done("displaced");
    if (!accepted) done("the destination's queue is full");
    this.#pump(to);
    return { accepted, state, delayMs };
  }

  stats(to: Address): OutboxStats | null {
    return this.#outbox.stats(to);
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#pumps.values()) clearTimeout(timer);
    for (const [to, connection] of this.#connections) {
      connection?.close();
      this.#giveUp(to, "stopped");
    }
  }

  #pump(to: Address): void {
    const connection = this.#connections.get(to);
    if (connection === undefined) this.#connect(to);
    if (connection === undefined || connection === null) return;
    while (connection.backlogBytes < IN_HAND_BYTES_MAX) {
      const letter = this.#outbox.next(to);
      if (letter === undefined) return;
      connection.send(letter.bytes);
      letter.done(null);
    }
    if (this.#pumps.has(to)) return;
    const again = setTimeout(() => {
      this.#pumps.delete(to);
      this.#pump(to);
    }, PUMP_MS);
    this.#pumps.set(to, again);
  }

  #connect(to: Address): void {
    this.#connections.set(to, null);
    this.#dial(to, {
      onReady: (connection) => {
        this.#connections.set(to, connection);
        this.#pump(to);
      },
      onEnd: (problem) => this.#giveUp(to, problem),
    });
  }

  /** What waited is handed back; the next post dials again. */
  #giveUp(to: Address, problem: string): void {
    this.#connections.delete(to);
    for (const letter of this.#outbox.remove(to)) letter.done(problem);
  }
}
