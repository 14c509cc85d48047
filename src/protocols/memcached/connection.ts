/** One connection to a memcached server, in its text protocol: one command at a time. */

import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";

export interface MemcachedCommand {
  readonly bytes: Buffer;
}

type Call = CarriedCall<MemcachedCommand>;

/** Longest line: a key has at most 250 bytes. */
const LINE_BYTES_MAX = 2_048;
/** Lines that answer a command, besides values and numbers. */
const WORDS = /^(?:STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|TOUCHED|OK|VERSION .*|\d{1,20})$/;

export class MemcachedConnection implements Connection<MemcachedCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  readonly #buffer = new StreamBuffer(this);
  #call: Call | null = null;
  /** Value of a get, until its END. */
  #value: Buffer | null = null;
  #problem = "";
  #now = 0;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: Call, now: number): void {
    const { bytes } = call.command;
    this.#call = call;
    this.#value = null;
    call.wrote(bytes.length, 1, now);
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    this.#call?.read(end, now);
    if (!this.#buffer.feed(buffer, end)) this.#lost({ kind: "protocol", text: this.#problem });
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    this.#now = now;
    const begun = this.#buffer.begun || this.#value !== null;
    this.#lost({ ...failure, text: begun ? `${failure.text} in mid-answer` : failure.text });
  }

  #lost(failure: ConnectionFailure): void {
    this.#call = null;
    this.#host.lost(failure, this.#now);
  }

  parse(buffer: Buffer, from: number, end: number): number {
    const lf = buffer.indexOf(10, from);
    if (lf < 0 || lf >= end)
      return end - from > LINE_BYTES_MAX ? this.#broken("a line is too long") : from;
    if (buffer[lf - 1] !== 13) return this.#broken("a line does not end in CRLF");
    const line = buffer.toString("latin1", from, lf - 1);
    const call = this.#call;
    if (call === null) return this.#broken("an unexpected line");
    const value = /^VALUE \S{1,250} \d{1,10} (\d{1,10})$/.exec(line);
    if (value !== null) return this.#readValue(Number(value[1]), buffer, from, lf + 1, end);
    return this.#line(call, line)
      ? lf + 1
      : this.#broken("the server does not speak the memcached protocol");
  }

  #broken(problem: string): -1 {
    this.#problem = problem;
    return -1;
  }

  #readValue(length: number, buffer: Buffer, from: number, at: number, end: number): number {
    const { bodyBytesMax } = this.#host.settings;
    if (length > bodyBytesMax)
      return this.#broken(`a value is longer than ${bodyBytesMax} bytes (bodyBytesMax)`);
    const last = at + length;
    if (last + 2 > end) {
      this.#buffer.wanted = last + 2 - from;
      return from;
    }
    if (buffer[last] !== 13 || buffer[last + 1] !== 10)
      return this.#broken("a value does not end where its length says");
    this.#value = Buffer.from(buffer.subarray(at, last));
    return last + 2;
  }

  #line(call: Call, line: string): boolean {
    const error = /^(ERROR|CLIENT_ERROR|SERVER_ERROR)\b ?(.*)$/.exec(line);
    if (error === null && line !== "END" && !WORDS.test(line)) return false;
    this.#call = null;
    if (error !== null) call.refused(error[1] ?? "ERROR", line, this.#now);
    else call.answered(line === "END" ? this.#value : line, this.#now);
    this.#value = null;
    return true;
  }
}
