/**
 * \n Interface that a protocol implements to carry calls to a target, and the events it reports to its host. A
 * connection is a socket with our own parser, or the client of a driver. Times, deadlines, pools and counting are
 * handled by its host.
 *
 *   connect ──▶ (socket, TLS, login) ──▶ host.opened ──▶ send … answered | refused | failed
 *      └──────────────── any ───────────────▶ host.lost            destroy: at once, not reported
 */

import type { Failure } from "../errors.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";

/** Milliseconds of each phase of opening a connection; negative for phases that did not happen. */
export interface OpenTimes {
  /** Until the connection to the server is open, without TLS. */
  readonly connectMs: number;
  readonly tlsMs: number;
  /** Greeting, authentication and settings, before the first call can be sent. */
  readonly loginMs: number;
}

export interface ConnectionFailure extends Failure {
  /** The protocol's own name of the failure, such as WRONGPASS; "" where it has none. */
  readonly code?: string;
  /** With a refusal: the times of opening until then. Counted when the connection was not open yet. */
  readonly opening?: OpenTimes;
  /** The server closed in order, after its last message. */
  readonly orderly?: boolean;
}

export interface Connection<Command> {
  /** Accepts no further call, and ends with the last one that it carries. */
  readonly spent?: boolean;
  /** Sends a call; only while the connection is open and has capacity. */
  send(call: CarriedCall<Command>, now: number): void;
  /**
   * The call was abandoned. Returns true when a late response cannot be mistaken for that of another call. Otherwise,
   * or without this method, the connection is destroyed.
   */
  forget?(call: CarriedCall<Command>): boolean;
  /** A new iteration of its user begins; ends what belongs to one iteration. */
  reset?(): void;
  /** Closes at once; nothing may be reported afterwards. */
  destroy(): void;
}

/** A call as its connection sees it. Exactly one of `answered`, `refused` and `failed` finishes it. */
export interface CarriedCall<Command> {
  readonly command: Command;
  /** The response may be read; otherwise it need not be decoded. */
  readonly keep: boolean;
  /** For a protocol with headers: the W3C trace header of this request, "" for none. */
  traceparent?(): string;
  /** Accounts sent bytes and requests; the first-byte timeout starts. */
  wrote(bytes: number, requests: number, now: number): void;
  /** Accounts received bytes. */
  read(bytes: number, now: number): void;
  /** Sets the protocol's numeric status of the response, as in HTTP. */
  status(status: number): void;
  answered(value: unknown, now: number): void;
  /** A complete response that reports an error, with the protocol's own name of it. */
  refused(code: string, text: string, now: number): void;
  failed(failure: ConnectionFailure, now: number): void;
}

/** Owner of a connection. */
export interface ConnectionHost {
  readonly origin: Origin;
  readonly settings: CallSettings;
  /** Number of its virtual user; 0 for a shared connection. */
  readonly user: number;
  /** The connection accepts calls from now on. */
  opened(times: OpenTimes, now: number): void;
  /** The connection is closed; every call on it fails with this failure. */
  lost(failure: ConnectionFailure, now: number): void;
}
