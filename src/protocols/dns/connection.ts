/** Sends queries to a DNS server over UDP or TCP, one at a time; responses are matched by message id. */

import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
  OpenTimes,
} from "../target/connection.ts";
import { DatagramSocket } from "../target/datagram-socket.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { codeName, decodeReply } from "./message.ts";

export interface DnsCommand {
  /** Encoded with message id 0. */
  readonly query: Buffer;
}

type Call = CarriedCall<DnsCommand>;

const IDS = 65_536;
const MALFORMED = { kind: "protocol", text: "the answer is malformed" } as const;

/** The pending query and the sequence of message ids. */
class Question {
  #call: Call | null = null;
  #id = Math.floor(Math.random() * IDS);

  /** Returns the query as it is sent. */
  ask(call: Call): Buffer {
    this.#call = call;
    this.#id = (this.#id + 1) % IDS;
    const query = Buffer.from(call.command.query);
    query.writeUInt16BE(this.#id);
    return query;
  }

  /** Drops the pending query; a late response carries an outdated id. */
  forget(): void {
    this.#call = null;
  }

  /** Returns false for malformed responses. Responses with another id are late and ignored. */
  answered(bytes: Buffer, now: number): boolean {
    if (bytes.length < 2) return false;
    const call = this.#call;
    if (call === null || bytes.readUInt16BE(0) !== this.#id) return true;
    const reply = decodeReply(bytes);
    if (reply === null) return false;
    this.#call = null;
    call.read(bytes.length, now);
    if (reply.code === 0) call.answered(reply, now);
    else {
      call.status(reply.code);
      call.refused(codeName(reply.code), `the server answered ${codeName(reply.code)}`, now);
    }
    return true;
  }
}

export class DnsUdpConnection implements Connection<DnsCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: DatagramSocket;
  readonly #question = new Question();

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new DatagramSocket(host, this, now);
  }

  datagramsOpen(times: OpenTimes, now: number): void {
    this.#host.opened(times, now);
  }

  send(call: Call, now: number): void {
    const query = this.#question.ask(call);
    call.wrote(query.length, 1, now);
    this.#socket.send(query);
  }

  forget(): boolean {
    this.#question.forget();
    return true;
  }

  datagram(bytes: Buffer, now: number): void {
    if (!this.#question.answered(bytes, now)) this.#host.lost(MALFORMED, now);
  }

  datagramsEnded(failure: ConnectionFailure, now: number): void {
    this.#host.lost(failure, now);
  }

  destroy(): void {
    this.#question.forget();
    this.#socket.destroy();
  }
}

/** Over TCP, every message is prefixed with its length. */
export class DnsTcpConnection implements Connection<DnsCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  readonly #question = new Question();
  readonly #buffer = new StreamBuffer(this);
  #now = 0;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: Call, now: number): void {
    const query = this.#question.ask(call);
    call.wrote(query.length + 2, 1, now);
    this.#socket.write(Buffer.concat([Buffer.of(query.length >> 8, query.length & 255), query]));
  }

  forget(): boolean {
    this.#question.forget();
    return true;
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    if (!this.#buffer.feed(buffer, end)) this.#host.lost(MALFORMED, now);
  }

  parse(buffer: Buffer, from: number, end: number): number {
    if (end - from < 2) return from;
    const last = from + 2 + buffer.readUInt16BE(from);
    if (last > end) {
      this.#buffer.wanted = last - from;
      return from;
    }
    const message = Buffer.from(buffer.subarray(from + 2, last));
    return this.#question.answered(message, this.#now) ? last : -1;
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    const text = this.#buffer.begun ? `${failure.text} in mid-answer` : failure.text;
    this.#host.lost({ ...failure, text }, now);
  }

  destroy(): void {
    this.#question.forget();
    this.#socket.destroy();
  }
}
