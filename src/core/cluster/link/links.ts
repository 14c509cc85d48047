/**
 * All connections of a process: links it keeps to its peers, and links that others keep to it.
 *
 *     keep(peer) ─► dial ─► greeting ─► opening, answered ─► up ─► send … ─► down(reason) ─► dial again
 *     accepted   ─► greeting ─► requests, each answered or refused · messages
 *
 * Handlers report every message and state change once. Effects are
 * emitted in the order in which they must be carried out. Input from a peer never throws.
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import { directionProblem, type StreamEnvelope } from "../../../wire/registry.ts";
import type { Entropy } from "../../../wire/seal.ts";
import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { Address } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { Connection, type ConnectionHandlers } from "./connection.ts";
import { KeptLink, type KeptLinkView } from "./kept-link.ts";
import { DIAL_MS_MAX, LINGER_MS, MARK_BYTES, type QueueLimits } from "./limits.ts";
import { refusalOf } from "./refusal.ts";
import type { LinkRules } from "./rules.ts";
import type { LinkEffect, LinkInput, StreamId } from "./types.ts";

interface LinksOptions {
  readonly hello: Hello;
  /** Key ring for new connections; see `useRing`. */
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  readonly limits: QueueLimits;
  readonly rules: LinkRules;
  readonly emit: (effect: LinkEffect) => void;
}

/** Request or message on an incoming connection. */
export interface Incoming {
  readonly stream: StreamId;
  readonly peer: Hello;
  readonly message: StreamEnvelope;
}

type RefusalEnvelope = Extract<StreamEnvelope, { readonly name: "refusal" }>;

interface LinksHandlers {
  /** Reason why the process at a peer's address is not that peer; null if it is. */
  readonly refusePeer: (peer: string, hello: Hello) => string | null;
  /** First message on a kept connection. Its answer decides whether the link is up. */
  readonly opening: (peer: string) => StreamEnvelope;
  /** Null if the link is up, else the reason why not. */
  readonly refuseOpened: (peer: string, answer: StreamEnvelope) => string | null;
  /** Called for messages handed to the network on this stream, never for dropped ones. */
  readonly onSent: (stream: StreamId, message: Uint8Array) => void;
  readonly onUp: (peer: string) => void;
  /** Unsolicited message from a kept peer, once the link is up. */
  readonly onPush: (peer: string, message: StreamEnvelope) => void;
  /** A kept peer refused a message. Its link goes down afterwards. */
  readonly onRefused?: (peer: string, refusal: RefusalEnvelope) => void;
  readonly onDown: (peer: string, problem: string) => void;
  /** Messages to a slow peer were dropped. */
  readonly onDropped: (peer: string, count: number) => void;
  /** Answer with `answer`, `refuse` or `destroy`, at once or later. */
  readonly onRequest: (incoming: Incoming) => void;
  /** Message without an answer. */
  readonly onMessage: (incoming: Incoming) => void;
  /** An incoming connection has ended. */
  readonly onGone: (stream: StreamId, gone: Gone) => void;
}

export interface Gone {
  /** Node that greeted, or its host if it did not. */
  readonly name: string;
  /** Reason why we closed it; null if we did not. */
  readonly problem: string | null;
  /** Broken by the network without notice; the peer may be alive. */
  readonly wasReset: boolean;
}

/** Correlation of the opening, the only request on its connection. */
const OPENING_CORRELATION = 1;

type Due = StreamId | KeptLink;

export class Links {
  readonly #options: LinksOptions;
  readonly #handlers: LinksHandlers;
  readonly #random: Random;
  readonly #markBytes: number;
  #ring: KeyRing;
  readonly #kept = new Map<string, KeptLink>();
  readonly #connections = new Map<StreamId, Connection>();
  /** Link of every dialled stream. */
  readonly #dialled = new Map<StreamId, KeptLink>();
  readonly #deadlines = new Deadlines<Due>();
  #dials = 0;
  #now = 0 as Millis;

  constructor(options: LinksOptions, handlers: LinksHandlers, random: Random) {
    this.#options = options;
    this.#handlers = handlers;
    this.#random = random;
    this.#ring = options.ring;
    this.#markBytes = Math.min(MARK_BYTES, Math.floor(options.limits.inHandBytesMax / 2));
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  /** Sets the key ring for new connections. Established ones keep the keys they were made with. */
  useRing(ring: KeyRing): void {
    this.#ring = ring;
  }

  /** Open incoming connections. */
  get accepted(): number {
    return this.#connections.size - this.#dialled.size;
  }

  /** View of the link to a kept peer. */
  view(peer: string): KeptLinkView {
    const link = this.#kept.get(peer);
    assert(link !== undefined, "only kept peers have a view");
    return link.view();
  }

  /** Adds a peer. Messages to it are queued until `call`. */
  keep(peer: string, to: Address): void {
    const { limits, rules } = this.#options;
    const random = this.#random.fork(peer);
    const dial = (link: KeptLink): StreamId => this.#dial(link);
    const { onSent } = this.#handlers;
    const link = new KeptLink({ ...{ peer, to, limits, rules, random, onSent }, dial });
    this.#kept.set(peer, link);
  }

  /** Dials all kept peers, and redials whenever a connection is lost. */
  call(now: Millis): void {
    this.#now = now;
    for (const link of this.#kept.values()) if (!link.isCalled) link.start(now);
  }

  /** Queues a message to a kept peer. */
  send(peer: string, message: Uint8Array, now: Millis): void {
    const link = this.#kept.get(peer);
    assert(link !== undefined, "messages go to kept peers");
    this.#now = now;
    const { dropped } = link;
    link.send(message, now);
    if (link.dropped > dropped && link.view().up) {
      this.#handlers.onDropped(peer, link.dropped - dropped);
    }
    this.#arm(link);
  }

  answer(stream: StreamId, message: StreamEnvelope, now: Millis): void {
    this.#connections.get(stream)?.send(message, now);
  }

  /** Sends the reason, then closes. */
  refuse({ stream, message }: Incoming, code: string, text: string, now: Millis): void {
    const connection = this.#connections.get(stream);
    if (connection === undefined) return;
    connection.send(refusalOf(message.correlation, code, text), now);
    this.#close(connection, now);
  }

  /** Flushes pending writes, then closes. */
  close(stream: StreamId, now: Millis): void {
    const connection = this.#connections.get(stream);
    if (connection !== undefined) this.#close(connection, now);
  }

  destroy(stream: StreamId, problem: string, now: Millis): void {
    this.#now = now;
    this.#connections.get(stream)?.destroy(problem);
    this.#forget(stream);
  }

  take(input: LinkInput, now: Millis): void {
    this.#now = now;
    switch (input.kind) {
      case "opened":
        this.#onOpened(input.stream, input.facts);
        return;
      case "dialFailed":
        this.#onDialFailed(input.stream, input.refused);
        return;
      case "bytes":
        this.#connections.get(input.stream)?.onBytes(input.bytes, now);
        return;
      case "drained": {
        this.#connections.get(input.stream)?.onDrained(input.mark);
        const link = this.#dialled.get(input.stream);
        if (link === undefined) return;
        link.push(now);
        this.#arm(link);
        return;
      }
      case "closed":
        this.#onDialFailed(input.stream, false);
        this.#connections.get(input.stream)?.onClosed(input.isReset);
        this.#forget(input.stream);
        return;
    }
  }

  /** Handles everything due by now; does nothing if called early. */
  tick(now: Millis): void {
    this.#now = now;
    for (const due of this.#deadlines.takeDue(now)) {
      if (due instanceof KeptLink) this.#tickLink(due);
      else this.#tickStream(due);
    }
  }

  nextDeadline(): number | null {
    return this.#deadlines.next();
  }

  #tickLink(link: KeptLink): void {
    if (link.nextDeadline() <= this.#now) link.onTick(this.#now);
    this.#arm(link);
  }

  /** Reschedules when the old deadline fires, so that received bytes need no heap update. */
  #tickStream(stream: StreamId): void {
    const connection = this.#connections.get(stream);
    if (connection === undefined) return;
    if (connection.nextDeadline() <= this.#now) connection.onTick(this.#now);
    if (connection.isOver) this.#forget(stream);
    else this.#deadlines.set(stream, connection.nextDeadline());
  }

  #dial(link: KeptLink): StreamId {
    this.#dials += 2;
    const stream = this.#dials as StreamId;
    this.#dialled.set(stream, link);
    this.#options.emit({ kind: "dial", stream, to: link.to, timeoutMs: DIAL_MS_MAX });
    return stream;
  }

  /** Ignores streams that were opened: their dial has not failed. */
  #onDialFailed(stream: StreamId, refused: boolean): void {
    const link = this.#dialled.get(stream);
    if (link === undefined || this.#connections.has(stream)) return;
    this.#dialled.delete(stream);
    this.#down(link, refused ? "nobody listens there" : "no connection", false);
  }

  #onOpened(stream: StreamId, facts: { host: string; peerUris: readonly string[] | null }): void {
    if (this.#connections.has(stream)) return;
    const link = this.#dialled.get(stream) ?? null;
    if (link === null && stream % 2 === 0) {
      // Dialled and abandoned since.
      this.#options.emit({ kind: "destroy", stream });
      return;
    }
    const { hello, entropy, compressor, emit } = this.#options;
    const side = link === null ? "server" : "client";
    const [ring, markBytes] = [this.#ring, this.#markBytes];
    const handlers = link === null ? this.#incoming() : this.#outgoing(link);
    const connection = new Connection(
      { ...{ stream, facts, side, hello, ring, entropy, compressor, markBytes, emit } },
      handlers,
      this.#now,
    );
    if (connection.isOver) return;
    this.#connections.set(stream, connection);
    this.#deadlines.set(stream, connection.nextDeadline());
  }

  #outgoing(link: KeptLink): ConnectionHandlers {
    const { peer } = link;
    return {
      onReady: (connection, hello) => {
        const problem = this.#handlers.refusePeer(peer, hello);
        if (problem !== null) {
          connection.destroy(problem);
          return;
        }
        link.onOpening(connection, this.#now);
        const opening = this.#handlers.opening(peer);
        connection.send({ ...opening, correlation: OPENING_CORRELATION }, this.#now);
        this.#arm(link);
      },
      onMessage: (connection, hello, message) => {
        if (link.isOpening) this.#onAnswer(link, connection, message);
        else this.#onPush(link, connection, hello, message);
      },
      onEnd: ({ isRefused, stream }, problem) => {
        this.#forget(stream);
        this.#down(link, problem ?? "the connection closed", isRefused);
      },
    };
  }

  #onAnswer(link: KeptLink, connection: Connection, answer: StreamEnvelope): void {
    if (answer.name === "refusal") {
      connection.destroy(answer.value.text);
      return;
    }
    // Ignores messages that do not answer the opening. (FRAME-8)
    if (answer.correlation !== OPENING_CORRELATION) return;
    const problem = this.#handlers.refuseOpened(link.peer, answer);
    if (problem !== null) {
      connection.destroy(problem);
      return;
    }
    link.onUp(this.#now);
    this.#arm(link);
    this.#handlers.onUp(link.peer);
  }

  #onPush(link: KeptLink, connection: Connection, hello: Hello, message: StreamEnvelope): void {
    const misdirected = directionProblem(message.name, hello.role, this.#options.hello.role);
    if (misdirected !== null) connection.destroy(misdirected);
    else if (message.name === "refusal") {
      this.#handlers.onRefused?.(link.peer, message);
      connection.destroy(message.value.text);
    } else this.#handlers.onPush(link.peer, message);
  }

  #incoming(): ConnectionHandlers {
    return {
      onReady: () => undefined,
      onMessage: (connection, peer, message) => this.#onIncoming(connection, peer, message),
      onEnd: ({ stream, peer, host, isOver, wasReset }, problem) => {
        // A refused connection stays open until the peer has read the reason.
        if (isOver) this.#forget(stream);
        else this.#deadlines.set(stream, this.#now + LINGER_MS);
        this.#handlers.onGone(stream, { name: peer?.node ?? host, problem, wasReset });
      },
    };
  }

  #onIncoming(connection: Connection, peer: Hello, message: StreamEnvelope): void {
    const { stream } = connection;
    const incoming = { stream, peer, message };
    const misdirected = directionProblem(message.name, peer.role, this.#options.hello.role);
    if (misdirected !== null) this.refuse(incoming, "ROLE", misdirected, this.#now);
    else if (message.correlation === 0) this.#handlers.onMessage(incoming);
    else this.#handlers.onRequest(incoming);
  }

  #close(connection: Connection, now: Millis): void {
    connection.close(now);
    this.#deadlines.set(connection.stream, connection.nextDeadline());
  }

  #down(link: KeptLink, problem: string, isRefused: boolean): void {
    link.onDown(problem, isRefused, this.#now);
    this.#arm(link);
    this.#handlers.onDown(link.peer, problem);
  }

  #forget(stream: StreamId): void {
    this.#connections.delete(stream);
    this.#dialled.delete(stream);
    this.#deadlines.delete(stream);
  }

  #arm(link: KeptLink): void {
    const at = link.nextDeadline();
    if (at === Number.POSITIVE_INFINITY) this.#deadlines.delete(link);
    else this.#deadlines.set(link, at);
  }
}
