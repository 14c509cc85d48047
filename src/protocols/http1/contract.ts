/** What exchanges, connections and their pools know of each other. */

import type { MeasuredCall } from "../call.ts";
import type { DecodedOwner } from "../http/decoded-bodies.ts";
import type { HttpMessage } from "../http/message.ts";
import type { Deferred } from "../net/turn.ts";
import type { CallSettings } from "../protocol.ts";
import type { Http1Bytes } from "./encode.ts";
import type { RepeatedText } from "./repeated-text.ts";

/** An exchange as the connection that carries it, and the pool in which it waits, see it. */
export interface CarriedExchange extends Deferred {
  readonly call: MeasuredCall;
  /** What is being sent now; a redirect replaces it. */
  readonly message: HttpMessage<Http1Bytes>;
  /** Somebody can look at the answer: keep its head, and make a response of it. */
  readonly keep: boolean;
  readonly source: ConnectionSource;
  /** Null while it waits for one, and as soon as its answer is complete. */
  connection: CarryingConnection | null;
  /** Where a redirect points; only looked for when one may be followed. */
  location: string | null;
  readonly wantsLocation: boolean;
  /** The whole answer lies in one piece of the read buffer: one copy serves head and body. */
  keepWhole(texts: RepeatedText, buffer: Buffer, from: number, headEnd: number, end: number): void;
  keepHead(buffer: Buffer, from: number, end: number): void;
  keepPiece(buffer: Buffer, from: number, end: number): void;
  /** The answer is complete; the connection is back in its pool. */
  complete(now: number): void;
}

export interface CarryingConnection {
  /** Connected, and for TLS secured. */
  readonly open: boolean;
  /** Lets go of its exchange, closes, and leaves its pool. */
  drop(): void;
}

/** What an exchange asks of its virtual user. */
export interface ConnectionSource extends DecodedOwner {
  readonly settings: CallSettings;
  /** The virtual user has ended: nothing begins, and nothing is told any more. */
  readonly closed: boolean;
  /** Sends the exchange on an idle connection, or opens one, or queues it. */
  acquire(exchange: CarriedExchange, now: number): void;
  /** The exchange gives up: its connection, or its place in the queue, is closed. */
  abandon(exchange: CarriedExchange): void;
  bytesFor(exchange: CarriedExchange): Http1Bytes;
  cookiesArrived(message: HttpMessage<Http1Bytes>, head: string): void;
}
