/**
 * One request and one reply on a connection of its own, and the other side of it: what those who call us
 * ask. For what is asked now and then of anybody; whoever talks all the time keeps a link. No data but health
 * checks travels in datagrams, all else on streams. (NET-2)
 *
 *     ask    ─► dial ─► greeting ─► request ─► reply ─► end           one deadline over all of it
 *     probe  ─► dial ─► PING ─► PONG ─► end                           says nothing about who answers
 *     called ─► greeting ─► request ─► admitted? ─► answered or refused, any number of times
 *
 * Every exchange and every probe ends once, by its deadline at the latest, whatever the peer does.
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import type { Admission } from "../../../wire/admission.ts";
import { mayConnect } from "../../../wire/claims.ts";
import { PROBE, PROBE_ANSWER } from "../../../wire/frame.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import {
  directionProblem,
  MESSAGES,
  type Priority,
  type StreamEnvelope,
} from "../../../wire/registry.ts";
import type { Entropy } from "../../../wire/seal.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { Address } from "../../base/ids.ts";
import { Connection, type ConnectionHandlers } from "./connection.ts";
import { LINGER_MS, MARK_BYTES } from "./limits.ts";
import { refusalOf } from "./refusal.ts";
import type { LinkEffect, LinkInput, StreamFacts, StreamId } from "./types.ts";

interface ExchangesOptions {
  readonly hello: Hello;
  /** For connections to come; see `useRing`. */
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  /** How much is carried out at one time. */
  readonly admission: Admission;
  readonly emit: (effect: LinkEffect) => void;
}

export type ExchangeResult =
  | { readonly ok: true; readonly reply: StreamEnvelope }
  /** `refused`: the host lives and nobody listens there. */
  | { readonly ok: false; readonly refused: boolean; readonly problem: string };

interface ExchangesHandlers {
  /** Once per `ask`. */
  readonly onExchanged: (exchange: number, to: Address, result: ExchangeResult) => void;
  /** Once per `probe`. */
  readonly onProbed: (probe: number, answered: boolean) => void;
  /** To be answered with `answer`, at once or later; what is not is given up when its connection ends. */
  readonly onRequest: (request: number, message: StreamEnvelope) => void;
  /** A connection was refused or broken; `name`: who greeted, or the host of one who did not. */
  readonly onProblem: (name: string, problem: string) => void;
}

/** On a connection of its own nothing else is asked. */
const CORRELATION = 1;
/** What a refused sender is told to wait. (BEX-5) */
const RETRY_AFTER_MS = 1_000;
/** Requests that may wait for their answer at one time; the oldest is given up for a new one. */
const REQUESTS_MAX = 1_024;

interface Asked {
  readonly kind: "exchange";
  readonly exchange: number;
  readonly to: Address;
  readonly request: StreamEnvelope;
  settled: boolean;
}

interface Probed {
  readonly kind: "probe";
  readonly probe: number;
  heardBytes: number;
}

interface Request {
  readonly stream: StreamId;
  readonly correlation: number;
  readonly priority: Priority;
}

export class Exchanges {
  readonly #options: ExchangesOptions;
  readonly #handlers: ExchangesHandlers;
  #ring: KeyRing;
  /** What each stream that we dialled is for. */
  readonly #dialled = new Map<StreamId, Asked | Probed>();
  readonly #connections = new Map<StreamId, Connection>();
  readonly #requests = new Map<number, Request>();
  readonly #deadlines = new Deadlines<StreamId>();
  readonly #incoming: ConnectionHandlers;
  #dials = 0;
  #requestCount = 0;
  #open = 0;
  #accepted = 0;
  #refused = 0;
  #now = 0 as Millis;

  constructor(options: ExchangesOptions, handlers: ExchangesHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#ring = options.ring;
    this.#incoming = {
      onReady: () => undefined,
      onMessage: (connection, peer, message) => this.#onRequest(connection, peer, message),
      onEnd: (connection, problem) => this.#onCallerEnd(connection, problem),
    };
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  /** For the connections to come; those that stand were made by both sides with the keys they had. */
  useRing(ring: KeyRing): void {
    this.#ring = ring;
  }

  /** Of connections that came in. */
  get counts(): { readonly open: number; readonly accepted: number; readonly refused: number } {
    return { open: this.#open, accepted: this.#accepted, refused: this.#refused };
  }

  ask(
    exchange: number,
    to: Address,
    request: StreamEnvelope,
    timeoutMs: number,
    now: Millis,
  ): void {
    const asked: Asked = { kind: "exchange", exchange, to, request, settled: false };
    this.#dial(asked, to, timeoutMs, now);
  }

  probe(probe: number, to: Address, timeoutMs: number, now: Millis): void {
    this.#dial({ kind: "probe", probe, heardBytes: 0 }, to, timeoutMs, now);
  }

  answer(request: number, reply: StreamEnvelope, now: Millis): void {
    const asked = this.#requests.get(request);
    if (asked === undefined) return;
    this.#release(request, asked);
    const { stream, correlation } = asked;
    this.#connections.get(stream)?.send({ ...reply, correlation }, now);
  }

  take(input: LinkInput, now: Millis): void {
    this.#now = now;
    const { stream } = input;
    const dialled = this.#dialled.get(stream);
    switch (input.kind) {
      case "opened":
        this.#onOpened(stream, input.facts, dialled);
        return;
      case "dialFailed": {
        if (dialled === undefined || this.#connections.has(stream)) return;
        const { refused } = input;
        this.#settle(stream, dialled, `dial ${refused ? "refused" : "failed"}`, refused);
        this.#forget(stream);
        return;
      }
      case "bytes":
        if (dialled?.kind === "probe") this.#onProbeAnswer(stream, dialled, input.bytes);
        else this.#connections.get(stream)?.onBytes(input.bytes, now);
        return;
      case "drained":
        this.#connections.get(stream)?.onDrained(input.mark);
        return;
      case "closed":
        this.#connections.get(stream)?.onClosed(input.isReset);
        if (dialled !== undefined) this.#settle(stream, dialled, "the connection closed");
        this.#forget(stream);
    }
  }

  tick(now: Millis): void {
    this.#now = now;
    for (const stream of this.#deadlines.takeDue(now)) this.#onDue(stream);
  }

  nextDeadline(): number | null {
    return this.#deadlines.next();
  }

  #dial(purpose: Asked | Probed, to: Address, timeoutMs: number, now: Millis): void {
    this.#now = now;
    this.#dials += 2;
    const stream = this.#dials as StreamId;
    this.#dialled.set(stream, purpose);
    this.#deadlines.set(stream, now + timeoutMs);
    this.#options.emit({ kind: "dial", stream, to, timeoutMs });
  }

  #onOpened(stream: StreamId, facts: StreamFacts, dialled: Asked | Probed | undefined): void {
    const { emit, hello, entropy, compressor } = this.#options;
    if (dialled === undefined && stream % 2 === 0) {
      // Dialled and given up since.
      emit({ kind: "destroy", stream });
      return;
    }
    if (dialled?.kind === "probe") {
      emit({ kind: "write", stream, bytes: PROBE, mark: null });
      return;
    }
    const side = dialled === undefined ? "server" : "client";
    if (side === "server") {
      this.#accepted++;
      this.#open++;
    }
    const [ring, markBytes] = [this.#ring, MARK_BYTES];
    const connection = new Connection(
      { stream, facts, side, hello, ring, entropy, compressor, markBytes, emit },
      dialled === undefined ? this.#incoming : this.#outgoing(dialled),
      this.#now,
    );
    if (connection.isOver) return;
    this.#connections.set(stream, connection);
    if (dialled === undefined) this.#deadlines.set(stream, connection.nextDeadline());
  }

  #outgoing(asked: Asked): ConnectionHandlers {
    return {
      onReady: (connection) => {
        connection.send({ ...asked.request, correlation: CORRELATION }, this.#now);
      },
      onMessage: (connection, _hello, reply) => {
        // A reply to something else is nobody's: the peer is confused, the deadline stands. (FRAME-8)
        if (reply.correlation !== CORRELATION || asked.settled) return;
        this.#exchanged(asked, { ok: true, reply });
        connection.close(this.#now);
        this.#deadlines.set(connection.stream, this.#now + LINGER_MS);
      },
      onEnd: ({ stream, host }, problem) => {
        if (problem !== null && !asked.settled) this.#handlers.onProblem(host, problem);
        this.#settle(stream, asked, problem ?? "the connection closed");
        this.#forget(stream);
      },
    };
  }

  #onDue(stream: StreamId): void {
    const dialled = this.#dialled.get(stream);
    const connection = this.#connections.get(stream);
    if (dialled === undefined) {
      this.#onCallerDue(stream, connection);
      return;
    }
    this.#settle(stream, dialled, "no reply in time");
    if (connection !== undefined) connection.destroy(null);
    else this.#options.emit({ kind: "destroy", stream });
    this.#forget(stream);
  }

  /** A deadline that has moved is looked at when the old one comes: bytes then cost no heap. */
  #onCallerDue(stream: StreamId, connection: Connection | undefined): void {
    if (connection === undefined) return;
    if (connection.nextDeadline() <= this.#now) connection.onTick(this.#now);
    if (connection.isOver) this.#forget(stream);
    else this.#deadlines.set(stream, connection.nextDeadline());
  }

  #onProbeAnswer(stream: StreamId, probed: Probed, bytes: Uint8Array): void {
    const rest = PROBE_ANSWER.subarray(probed.heardBytes);
    const same = bytes.length <= rest.length && bytes.every((byte, at) => byte === rest[at]);
    probed.heardBytes += bytes.length;
    if (same && probed.heardBytes < PROBE_ANSWER.length) return;
    this.#options.emit({ kind: "destroy", stream });
    this.#forget(stream);
    this.#handlers.onProbed(probed.probe, same);
  }

  /** It failed, if it has not ended before. */
  #settle(stream: StreamId, purpose: Asked | Probed, problem: string, refused = false): void {
    if (this.#dialled.get(stream) !== purpose) return;
    if (purpose.kind === "probe") this.#handlers.onProbed(purpose.probe, false);
    else if (!purpose.settled) this.#exchanged(purpose, { ok: false, refused, problem });
  }

  #exchanged(asked: Asked, result: ExchangeResult): void {
    asked.settled = true;
    this.#handlers.onExchanged(asked.exchange, asked.to, result);
  }

  #onRequest(connection: Connection, peer: Hello, message: StreamEnvelope): void {
    const { admission, hello } = this.#options;
    const { name, correlation } = message;
    // The matrix of roles governs work; membership is between any two members. (C10-26)
    const denied = name === "membership" ? null : mayConnect(peer.role, hello.role);
    const misdirected = denied ?? directionProblem(name, peer.role, hello.role);
    if (misdirected !== null) {
      this.#handlers.onProblem(peer.node, misdirected);
      connection.send(refusalOf(correlation, "ROLE", misdirected), this.#now);
      return;
    }
    const { priority } = MESSAGES[name];
    if (!admission.tryAcquire(priority)) {
      const busy = "too much work at the moment";
      connection.send(refusalOf(correlation, "BUSY", busy, RETRY_AFTER_MS), this.#now);
      return;
    }
    const request = ++this.#requestCount;
    this.#requests.set(request, { stream: connection.stream, correlation, priority });
    for (const [oldest, asked] of this.#requests) {
      if (this.#requests.size <= REQUESTS_MAX) break;
      this.#release(oldest, asked);
    }
    this.#handlers.onRequest(request, message);
  }

  #onCallerEnd({ stream, peer, host, isOver }: Connection, problem: string | null): void {
    this.#open--;
    // What was admitted and not answered is released. (BEX-3)
    for (const [request, asked] of this.#requests) {
      if (asked.stream === stream) this.#release(request, asked);
    }
    // One that was refused stays until it has read why.
    if (isOver) this.#forget(stream);
    else this.#deadlines.set(stream, this.#now + LINGER_MS);
    if (problem === null) return;
    this.#refused++;
    this.#handlers.onProblem(peer?.node ?? host, problem);
  }

  #release(request: number, { priority }: Request): void {
    if (this.#requests.delete(request)) this.#options.admission.release(priority);
  }

  #forget(stream: StreamId): void {
    this.#connections.delete(stream);
    this.#dialled.delete(stream);
    this.#deadlines.delete(stream);
  }
}
