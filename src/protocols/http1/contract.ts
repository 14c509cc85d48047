/** Interfaces between exchanges, connections and their pools. */

import type { MeasuredCall } from "../call.ts";
import type { DecodedOwner } from "../http/decoded-bodies.ts";
import type { HttpMessage } from "../http/message.ts";
import type { Deferred } from "../net/turn.ts";
import type { CallSettings } from "../protocol.ts";
import type { Http1Bytes } from "./encode.ts";
import type { RepeatedText } from "./repeated-text.ts";

/** An exchange as seen by its connection, or by the pool in which it waits. */
export interface CarriedExchange extends Deferred {
  readonly call: MeasuredCall;
  /** Message being sent; a redirect replaces it. */
  readonly message: HttpMessage<Http1Bytes>;
  /** The response can be read: keep its head and create a response object. */
  readonly keep: boolean;
  readonly source: ConnectionSource;
  /** Null while it waits for a connection, and as soon as its response is complete. */
  connection: CarryingConnection | null;
  /** Target of a redirect; parsed only when one may be followed. */
  location: string | null;
  readonly wantsLocation: boolean;
  /** The whole response is in one piece of the read buffer; one copy serves head and body. */
  keepWhole(texts: RepeatedText, buffer: Buffer, from: number, headEnd: number, end: number): void;
  keepHead(buffer: Buffer, from: number, end: number): void;
  keepPiece(buffer: Buffer, from: number, end: number): void;
  /** The response is complete; the connection is back in its pool. */
  complete(now: number): void;
}

export interface CarryingConnection {
  /** Connected and, for TLS, secured. */
  readonly open: boolean;
  /** Detaches its exchange, closes, and leaves its pool. */
  drop(): void;
}

/** Connections of a virtual user, as an exchange uses them. */
export interface ConnectionSource extends DecodedOwner {
  readonly settings: CallSettings;
  /** The virtual user has stopped: nothing is started or reported any more. */
  readonly closed: boolean;
  /** Sends the exchange on an idle connection, or opens one, or queues it. */
  acquire(exchange: CarriedExchange, now: number): void;
  /** Abandons the exchange: closes its connection, or removes it from the queue. */
  abandon(exchange: CarriedExchange): void;
  bytesFor(exchange: CarriedExchange): Http1Bytes;
  cookiesArrived(message: HttpMessage<Http1Bytes>, head: string): void;
}
