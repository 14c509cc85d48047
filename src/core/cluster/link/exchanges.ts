/**
 * One request and one reply on a dedicated connection, and the server side of it. For occasional requests to any
 * process; peers that communicate constantly keep a link instead. Only health checks travel in datagrams,
 * everything else on streams. (NET-2)
 *
 *     ask    ─► dial ─► greeting ─► request ─► reply ─► end           one deadline over all of it
 *     probe  ─► dial ─► PING ─► PONG ─► end                           does not identify the answering process
 *     called ─► greeting ─► request ─► admitted? ─► answered or refused, any number of times
 *
 * Every exchange and every probe completes once, by its deadline at the latest, whatever the peer does.
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
  /** Key ring for new connections; see `useRing`. */
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  /** Limits concurrent requests. */
  readonly admission: Admission;
  readonly emit: (effect: LinkEffect) => void;
}

export type ExchangeResult =
  | { readonly ok: true; readonly reply: StreamEnvelope }
  /** `refused`: the host is alive but nothing listens there. */
  | { readonly ok: false; readonly refused: boolean; readonly problem: string };

interface ExchangesHandlers {
  /** Called once per `ask`. */
  readonly onExchanged: (exchange: number, to: Address, result: ExchangeResult) => void;
  /** Called once per `probe`. */
  readonly onProbed: (probe: number, answered: boolean) => void;
  /** Answer with `answer`, at once or later. An unanswered request is dropped when its connection ends. */
  readonly onRequest: (request: number, message: StreamEnvelope) => void;
  /** A connection was refused or broken. `name`: the node that greeted, or its host if it did not. */
  readonly onProblem: (name: string, problem: string) => void;
}

/** A dedicated connection carries one request only. */
const CORRELATION = 1;
/** Retry delay sent to refused callers. (BEX-5) */
const RETRY_AFTER_MS = 1_000;
/** Maximum number of unanswered requests; a new one drops the oldest. */
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
  receivedBytes: number;
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
  /** Purpose of each dialled stream. */
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

  /** Sets the key ring for new connections. Established ones keep the keys they were made with. */
  useRing(ring: KeyRing): void {
    this.#ring = ring;
  }

  /** Counts of incoming connections. */
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
    this.#dial({ kind: "probe", probe, receivedBytes: 0 }, to, timeoutMs, now);
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
      // Dialled and abandoned since.
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
        // Ignores replies with a foreign correlation; the deadline still applies. (FRAME-8)
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

  /** Reschedules when the old deadline fires, so that received bytes need no heap update. */
  #onCallerDue(stream: StreamId, connection: Connection | undefined): void {
    if (connection === undefined) return;
    if (connection.nextDeadline() <= this.#now) connection.onTick(this.#now);
    if (connection.isOver) this.#forget(stream);
    else this.#deadlines.set(stream, connection.nextDeadline());
  }

  #onProbeAnswer(stream: StreamId, probed: Probed, bytes: Uint8Array): void {
    const rest = PROBE_ANSWER.subarray(probed.receivedBytes);
    const same = bytes.length <= rest.length && bytes.every((byte, at) => byte === rest[at]);
    probed.receivedBytes += bytes.length;
    if (same && probed.receivedBytes < PROBE_ANSWER.length) return;
    this.#options.emit({ kind: "destroy", stream });
    this.#forget(stream);
    this.#handlers.onProbed(probed.probe, same);
  }

  /** Fails an exchange or probe that has not completed yet. */
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
    // The role matrix restricts work only; any two members may exchange membership. (C10-26)
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
    // Releases requests that were admitted but not answered. (BEX-3)
    for (const [request, asked] of this.#requests) {
      if (asked.stream === stream) this.#release(request, asked);
    }
    // A refused connection stays open until the peer has read the reason.
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
