/** One TCP connection of a virtual user: it sends bytes, and may wait for a response, one call at a time. */

import { clock } from "../call.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { answerLength, type TcpFraming } from "./answer.ts";

export interface TcpCommand {
  readonly bytes: Uint8Array;
  readonly framing: TcpFraming;
}

export class TcpConnection implements Connection<TcpCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  readonly #buffer = new StreamBuffer(this);
  #call: CarriedCall<TcpCommand> | null = null;
  /** Pieces of a response that ends with the connection. */
  #pieces: Buffer[] = [];
  #piecesLength = 0;
  #problem = "";
  #now = 0;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: CarriedCall<TcpCommand>, now: number): void {
    const { bytes, framing } = call.command;
    this.#call = call;
    this.#pieces = [];
    this.#piecesLength = 0;
    call.wrote(bytes.length, 1, now);
    if (framing.kind !== "none") this.#socket.write(bytes);
    else
      this.#socket.write(bytes, () => {
        if (this.#call === call) this.#end(call, null, clock());
      });
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    this.#call?.read(end, now);
    if (this.#call?.command.framing.kind === "close") this.#collect(buffer, end);
    else if (!this.#buffer.feed(buffer, end)) this.#lost({ kind: "protocol", text: this.#problem });
    else if (this.#call !== null) this.#checkLength(this.#buffer.length);
  }

  #collect(buffer: Buffer, end: number): void {
    this.#piecesLength += end;
    if (this.#checkLength(this.#piecesLength))
      this.#pieces.push(Buffer.from(buffer.subarray(0, end)));
  }

  /** Limits the length of an incomplete response. */
  #checkLength(length: number): boolean {
    const { bodyBytesMax } = this.#host.settings;
    if (length <= bodyBytesMax) return true;
    this.#lost({
      kind: "protocol",
      text: `the answer is longer than ${bodyBytesMax} bytes (bodyBytesMax)`,
    });
    return false;
  }

  parse(buffer: Buffer, from: number, end: number): number {
    const call = this.#call;
    if (call === null) {
      this.#problem = "unexpected bytes";
      return -1;
    }
    const found = answerLength(call.command.framing, buffer, from, end);
    if ("length" in found) {
      const last = from + found.length;
      this.#end(call, Buffer.from(buffer.subarray(from, last)), this.#now);
      return last;
    }
    if (found.wanted > this.#host.settings.bodyBytesMax) {
      this.#problem = `the answer is longer than ${this.#host.settings.bodyBytesMax} bytes (bodyBytesMax)`;
      return -1;
    }
    this.#buffer.wanted = found.wanted;
    return from;
  }

  #end(call: CarriedCall<TcpCommand>, value: Buffer | null, now: number): void {
    this.#call = null;
    call.answered(value, now);
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    const call = this.#call;
    this.#now = now;
    if (
      call?.command.framing.kind === "close" &&
      failure.kind === "reset" &&
      failure.orderly === true
    ) {
      const whole = Buffer.concat(this.#pieces);
      this.#end(call, whole, now);
    }
    const text = this.#buffer.begun ? `${failure.text} in mid-answer` : failure.text;
    this.#lost({ ...failure, text });
  }

  #lost(failure: ConnectionFailure): void {
    this.#call = null;
    this.#host.lost(failure, this.#now);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }
}
