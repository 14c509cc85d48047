import { contentAsked } from "../failed-content.ts";
import { parseJsonBody } from "../json-body.ts";
import { type CallRecord, CallResult } from "../protocol.ts";
import type { OutgoingMessage, WaitOptions, WebsocketMessage } from "./message.ts";

/** One connection, as functions of a workflow use it. */
export interface WebsocketSocket {
  readonly open: boolean;
  readonly closed: boolean;
  /** The subprotocol that the server chose; "" when none. */
  readonly protocol: string;
  /** Messages that were dropped because they were not received in time. */
  readonly dropped: number;
  /** Sends a message and waits for the response that follows it. */
  request(message: OutgoingMessage, options?: WaitOptions): Promise<WebsocketResponse>;
  /** Sends a message; finishes when its bytes were written to the network. */
  send(
    message: OutgoingMessage,
    options?: Pick<WaitOptions, "timeout">,
  ): Promise<WebsocketResponse>;
  /** Waits for a message: the first unread one, or the next to arrive. */
  receive(options?: WaitOptions): Promise<WebsocketResponse>;
  /** Closes in order; finishes when the server has confirmed it. */
  close(code?: number, reason?: string): Promise<WebsocketResponse>;
}

/**
 * Result of one WebSocket call: a handshake, a send, or a wait for a message. `status` is that of the handshake, and 0
 * for later calls. `Body` is the type of `json()`.
 */
export class WebsocketResponse<Body = unknown> extends CallResult {
  override readonly protocol: string = "websocket";
  /** The message that the call waited for. */
  readonly message: WebsocketMessage | null;
  /** Connection of the call; null when there is none. */
  readonly socket: WebsocketSocket | null;

  constructor(
    record: CallRecord,
    error: string | null,
    message: WebsocketMessage | null,
    socket: WebsocketSocket | null,
  ) {
    super(record, error);
    this.message = message;
    this.socket = socket;
  }

  bytes(): Buffer {
    contentAsked(this);
    if (this.message === null) throw new Error(this.error ?? "this call has no message");
    return this.message.bytes;
  }

  text(): string {
    return this.bytes().toString("utf8");
  }

  /** Throws when the message is not JSON, which fails the step. */
  json<Value = Body>(): Value {
    return parseJsonBody(this.text(), "the message");
  }
}
