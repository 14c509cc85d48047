/**
 * What a protocol implements to carry calls to a target, and what it tells whoever holds it. A
 * connection is a socket with a reader of our own, or the client of a driver; times, deadlines, pools
 * and counting are none of its business.
 *
 *   connect ──▶ (socket, TLS, login) ──▶ host.opened ──▶ send … answered | refused | failed
 *      └──────────────── any ───────────────▶ host.lost            destroy: at once, told to nobody
 */

import type { Failure } from "../errors.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";

/** Milliseconds of each part of opening a connection; negative for what did not happen. */
export interface OpenTimes {
  /** Until the way to the server is open, without TLS. */
  readonly connectMs: number;
  readonly tlsMs: number;
  /** Greeting, authentication and settings, before the first call can be sent. */
  readonly loginMs: number;
}

export interface ConnectionFailure extends Failure {
  /** The protocol's own name for it, such as WRONGPASS; "" where it has none. */
  readonly code?: string;
  /** With a refusal: what opening took until then. It counts where the connection was not open yet. */
  readonly opening?: OpenTimes;
  /** The server closed in order, after all that it had to say. */
  readonly orderly?: boolean;
}

export interface Connection<Command> {
  /** It takes no further call: it ends with the last one that it carries. */
  readonly spent?: boolean;
  /** Takes a call; only while the connection is open and has room for it. */
  send(call: CarriedCall<Command>, now: number): void;
  /**
   * The call has given up. True: its answer, should it still come, cannot be taken for another's.
   * Without it, or when false, the connection is destroyed.
   */
  forget?(call: CarriedCall<Command>): boolean;
  /** A new iteration of its user begins: what was meant for one iteration ends. */
  reset?(): void;
  /** Ends it at once; nothing of it may be heard afterwards. */
  destroy(): void;
}

/** A call as its connection sees it. Exactly one of `answered`, `refused` and `failed` ends it. */
export interface CarriedCall<Command> {
  readonly command: Command;
  /** Somebody may look at the answer: without that it need not be decoded. */
  readonly keep: boolean;
  /** For a protocol with headers: the W3C one that this request carries, "" for none. */
  traceparent?(): string;
  /** So many bytes and requests went out; from now on the time to the first byte counts. */
  wrote(bytes: number, requests: number, now: number): void;
  /** So many bytes came in for it. */
  read(bytes: number, now: number): void;
  /** A number that the protocol gives to answers, as HTTP does. */
  status(status: number): void;
  answered(value: unknown, now: number): void;
  /** A complete answer that says no, by the protocol's own name for that. */
  refused(code: string, text: string, now: number): void;
  failed(failure: ConnectionFailure, now: number): void;
}

/** Who holds a connection. */
export interface ConnectionHost {
  readonly origin: Origin;
  readonly settings: CallSettings;
  /** Number of the virtual user that it is for; 0 where many share it. */
  readonly user: number;
  /** It takes calls from now on. */
  opened(times: OpenTimes, now: number): void;
  /** It is closed: every call that it carries ends so. */
  lost(failure: ConnectionFailure, now: number): void;
}
