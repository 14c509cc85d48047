/**
 * Subset of Cassandra's native protocol needed for writing: start, log in, prepare, execute. Version 3, which all
 * servers since 2.1 and Scylla speak. Requests are numbered, so many are in flight at once.
 */

import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";

const VERSION = 3;
const HEADER_BYTES = 9;
/** Limit set by the protocol. */
const FRAME_BYTES_MAX = 256 * 1_024 * 1_024;
const LOCAL_QUORUM = 6;
const WITH_VALUES = 1;
const PREPARED = 4;

const CODES = {
  error: 0x00,
  startup: 0x01,
  ready: 0x02,
  authenticate: 0x03,
  query: 0x07,
  result: 0x08,
  prepare: 0x09,
  execute: 0x0a,
  authResponse: 0x0f,
} as const;

/** Values of a statement: texts, numbers (double), dates (timestamp), maps of texts. */
export type CqlValue = string | number | Date | Readonly<Record<string, string>>;

/** An error response of the server. */
export class CqlError extends Error {
  override readonly name = "CqlError";
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.code = code;
  }
}

export interface CqlAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly user: string | undefined;
  readonly password: string | undefined;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

interface Answer {
  readonly code: number;
  readonly body: Buffer;
}

export class CqlConnection {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  #unread: Buffer = Buffer.alloc(0);
  #next = 0;

  constructor({ host, port, tls }: CqlAddress) {
    this.#socket = tls ? connectSecure({ host, port, servername: host }) : connectPlain(port, host);
    this.#socket.on("data", (data: Buffer) => this.#onData(data));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error("the connection was lost")));
  }

  async start({ password = "", user = "" }: CqlAddress): Promise<void> {
    const version = { CQL_VERSION: "3.0.0" };
    const { code } = await this.#request(CODES.startup, textMap(version, shortText));
    if (code !== CODES.authenticate) return;
    await this.#request(CODES.authResponse, longBytes(Buffer.from(`\0${user}\0${password}`)));
  }

  async query(statement: string): Promise<void> {
    const body = [longBytes(Buffer.from(statement)), short(LOCAL_QUORUM), Buffer.from([0])];
    await this.#request(CODES.query, Buffer.concat(body));
  }

  /** Returns the server's id of the prepared statement. */
  async prepare(statement: string): Promise<Buffer> {
    const { body } = await this.#request(CODES.prepare, longBytes(Buffer.from(statement)));
    if (body.readInt32BE(0) !== PREPARED) throw new Error("it prepared no statement");
    return body.subarray(6, 6 + body.readUInt16BE(4));
  }

  async execute(statement: Uint8Array, values: readonly CqlValue[]): Promise<void> {
    const body = [
      ...[short(statement.length), statement, short(LOCAL_QUORUM), Buffer.from([WITH_VALUES])],
      ...[short(values.length), ...values.map((value) => longBytes(valueBytes(value)))],
    ];
    await this.#request(CODES.execute, Buffer.concat(body));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #request(code: number, body: Uint8Array): Promise<Answer> {
    const number = this.#next;
    this.#next = (this.#next + 1) % 0x8000;
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt8(VERSION, 0);
    header.writeInt16BE(number, 2);
    header.writeUInt8(code, 4);
    header.writeInt32BE(body.length, 5);
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) reject(new Error("the connection was lost"));
      this.#waiting.set(number, { resolve, reject });
      this.#socket.write(Buffer.concat([header, body]));
    });
  }

  #onData(data: Buffer): void {
    this.#unread = this.#unread.length === 0 ? data : Buffer.concat([this.#unread, data]);
    while (this.#unread.length >= HEADER_BYTES) {
      const length = this.#unread.readInt32BE(5);
      if ((this.#unread[0] ?? 0) !== 0x80 + VERSION || length < 0 || length > FRAME_BYTES_MAX) {
        this.#socket.destroy(new Error("what came is not Cassandra's protocol, version 3"));
        return;
      }
      if (this.#unread.length < HEADER_BYTES + length) return;
      const number = this.#unread.readInt16BE(2);
      const code = this.#unread[4] ?? 0;
      const body = this.#unread.subarray(HEADER_BYTES, HEADER_BYTES + length);
      this.#unread = this.#unread.subarray(HEADER_BYTES + length);
      this.#onAnswer(number, { code, body });
    }
  }

  #onAnswer(number: number, { body, code }: Answer): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (code !== CODES.error) waiting?.resolve({ code, body });
    else {
      const text = body.toString("utf8", 6, 6 + body.readUInt16BE(4));
      waiting?.reject(new CqlError(body.readInt32BE(0), text));
    }
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

function short(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function shortText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([short(bytes.length), bytes]);
}

function longBytes(bytes: Uint8Array): Buffer {
  return Buffer.concat([int(bytes.length), bytes]);
}

function textMap(map: Readonly<Record<string, string>>, text: (of: string) => Buffer): Buffer {
  const entries = Object.entries(map);
  return Buffer.concat([short(entries.length), ...entries.flat().map(text)]);
}

function valueBytes(value: CqlValue): Buffer {
  if (typeof value === "string") return Buffer.from(value);
  const bytes = Buffer.alloc(8);
  if (typeof value === "number") bytes.writeDoubleBE(value);
  else if (value instanceof Date) bytes.writeBigInt64BE(BigInt(value.getTime()));
  else {
    const entries = Object.entries(value);
    const texts = entries.flat().map((text) => longBytes(Buffer.from(text)));
    return Buffer.concat([int(entries.length), ...texts]);
  }
  return bytes;
}
