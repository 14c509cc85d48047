import { type CallRecord, CallResult } from "../protocol.ts";
import type { WebsocketMessage } from "./message.ts";
import type { WebsocketSocket } from "./socket.ts";

/**
 * The measured end of one WebSocket call: a handshake, a send, or a message that was waited for.
 * `status` is that of the handshake, and 0 for everything behind it.
 */
export class WebsocketResponse extends CallResult {
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
    if (this.message === null) throw new Error(this.error ?? "this call has no message");
    return this.message.bytes;
  }

  text(): string {
    return this.bytes().toString("utf8");
  }

  /** Throws when the message is not JSON; the step then counts as failed. */
  json<Value = unknown>(): Value {
    const text = this.text();
    try {
      return JSON.parse(text) as Value;
    } catch (cause) {
      const start = text.length > 60 ? `${text.slice(0, 60)}…` : text;
      throw new Error(`the message is not JSON: ${JSON.stringify(start)}`, { cause });
    }
  }
}
