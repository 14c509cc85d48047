import { contentAsked } from "../failed-content.ts";
import { parseJsonBody } from "../json-body.ts";
import { type CallRecord, CallResult } from "../protocol.ts";
import type { OutgoingMessage, WaitOptions, WebsocketMessage } from "./message.ts";

/** One connection as functions of a workflow use it. */
export interface WebsocketSocket {
  readonly open: boolean;
  readonly closed: boolean;
  /** The subprotocol that the server chose; "" when none. */
  readonly protocol: string;
  /** Messages that were thrown away because nobody received them in time. */
  readonly dropped: number;
  /** Sends a message and waits for its answer, which comes behind it. */
  request(message: OutgoingMessage, options?: WaitOptions): Promise<WebsocketResponse>;
  /** Sends a message; ends when its bytes have been handed to the network. */
  send(
    message: OutgoingMessage,
    options?: Pick<WaitOptions, "timeout">,
  ): Promise<WebsocketResponse>;
  /** Waits for a message: one that came already and was not taken, or the next. */
  receive(options?: WaitOptions): Promise<WebsocketResponse>;
  /** Closes in order: ends when the server has agreed. */
  close(code?: number, reason?: string): Promise<WebsocketResponse>;
}

/**
 * The measured end of one WebSocket call: a handshake, a send, or a message that was waited for.
 * `status` is that of the handshake, and 0 for everything behind it. `Body` is what `json()` gives.
 */
export class WebsocketResponse<Body = unknown> extends CallResult {
  override readonly protocol: string = "websocket";
  /** The message that was waited for. */
  readonly message: WebsocketMessage | null;
  /** The connection it came on; null when there is none. */
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

  /** Throws when the message is not JSON; the step then counts as failed. */
  json<Value = Body>(): Value {
    return parseJsonBody(this.text(), "the message");
  }
}
