/**
 * Just enough of gRPC to put keys into etcd at full speed: one connection, many streams, the same header block for
 * every call. A general client would cost more than the server it measures.
 */

import { connect, type Socket } from "node:net";

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const WINDOW_MAX = 2 ** 31 - 1;
const HEAD_BYTES = 9;
/** Flow-control window for the other side. */
const TAKEN_BYTES = 1_048_576;

export class EtcdConnection {
  readonly #socket: Socket;
  readonly #headers: Buffer;
  readonly #waiting = new Map<number, (ok: boolean) => void>();
  readonly #answered = new Set<number>();
  #rest: Buffer = Buffer.alloc(0);
  #unsent: Buffer[] = [];
  #stream = 1;
  /** Our send window. */
  #window = 65_535;
  #held: { readonly bytes: Buffer; readonly size: number }[] = [];
  #taken = 0;

  constructor(host: string, port: number) {
    this.#headers = headerBlock(`${host}:${port}`);
    this.#socket = connect({ host, port });
    this.#socket.setNoDelay(true);
    this.#socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(4, 0); // INITIAL_WINDOW_SIZE
    settings.writeUInt32BE(WINDOW_MAX, 2);
    this.#socket.write(frameOf(SETTINGS, 0, 0, settings));
    this.#socket.on("data", (bytes) => this.#onData(bytes));
    this.#socket.on("error", () => this.#socket.destroy());
    this.#socket.on("close", () => {
      for (const done of this.#waiting.values()) done(false);
      this.#waiting.clear();
    });
  }

  put(key: Buffer, value: Uint8Array, done: (ok: boolean) => void): void {
    const id = this.#stream;
    this.#stream += 2;
    this.#waiting.set(id, done);
    const size =
      1 + varintBytes(key.length) + key.length + 1 + varintBytes(value.length) + value.length;
    const message = Buffer.alloc(5 + size);
    message.writeUInt32BE(size, 1);
    let at = field(message, 5, 0x0a, key);
    at = field(message, at, 0x12, value);
    const bytes = Buffer.concat([
      frameOf(HEADERS, END_HEADERS, id, this.#headers),
      frameOf(DATA, END_STREAM, id, message.subarray(0, at)),
    ]);
    if (this.#unsent.length === 0) setImmediate(() => this.#flush());
    if (this.#held.length > 0 || this.#window < at) this.#held.push({ bytes, size: at });
    else {
      this.#window -= at;
      this.#unsent.push(bytes);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #flush(): void {
    const bytes = this.#unsent;
    this.#unsent = [];
    if (bytes.length > 0) this.#socket.write(Buffer.concat(bytes));
  }

  #onData(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEAD_BYTES) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.length - at < HEAD_BYTES + length) break;
      const id = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      const payload = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length);
      this.#onFrame(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, id, payload);
      at += HEAD_BYTES + length;
    }
    this.#rest = bytes.subarray(at);
  }

  #onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case DATA:
        this.#answered.add(id);
        this.#take(payload.length);
        break;
      case SETTINGS:
        if ((flags & ACK) === 0) this.#socket.write(frameOf(SETTINGS, ACK, 0, Buffer.alloc(0)));
        return;
      case PING:
        if ((flags & ACK) === 0) this.#socket.write(frameOf(PING, ACK, 0, payload));
        return;
      case WINDOW_UPDATE:
        if (id === 0) this.#open(payload.readUInt32BE(0));
        return;
      case GOAWAY:
        this.#socket.destroy();
        return;
      default:
        break;
    }
    if ((flags & END_STREAM) === 0 || (type !== HEADERS && type !== DATA)) return;
    const done = this.#waiting.get(id);
    this.#waiting.delete(id);
    // A rejected call has trailers and no message.
    done?.(this.#answered.delete(id));
  }

  #open(bytes: number): void {
    this.#window += bytes;
    let sent = 0;
    for (const { bytes: held, size } of this.#held) {
      if (size > this.#window) break;
      this.#window -= size;
      if (this.#unsent.length === 0) setImmediate(() => this.#flush());
      this.#unsent.push(held);
      sent++;
    }
    this.#held.splice(0, sent);
  }

  #take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < 16_384) return;
    const update = Buffer.alloc(4);
    update.writeUInt32BE(Math.min(this.#taken, TAKEN_BYTES), 0);
    this.#taken = 0;
    this.#socket.write(frameOf(WINDOW_UPDATE, 0, 0, update));
  }
}

function frameOf(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(HEAD_BYTES + payload.length);
  frame.writeUIntBE(payload.length, 0, 3);
  frame[3] = type;
  frame[4] = flags;
  frame.writeUInt32BE(id, 5);
  frame.set(payload, HEAD_BYTES);
  return frame;
}

/** HPACK with entries of its static table, the rest as literals. */
function headerBlock(authority: string): Buffer {
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.of(value.length), Buffer.from(value)]);
  return Buffer.concat([
    Buffer.of(0x83, 0x86, 0x04), // POST, http, path:
    text("/etcdserverpb.KV/Put"),
    Buffer.of(0x01), // authority:
    text(authority),
    Buffer.of(0x0f, 0x10), // content-type:
    text("application/grpc"),
    Buffer.of(0x00),
    text("te"),
    text("trailers"),
  ]);
}

function varintBytes(value: number): number {
  return value < 0x80 ? 1 : 2;
}

function field(into: Buffer, from: number, tag: number, value: Uint8Array): number {
  let at = from;
  into[at++] = tag;
  if (value.length >= 0x80) {
    into[at++] = (value.length & 0x7f) | 0x80;
    into[at++] = value.length >> 7;
  } else into[at++] = value.length;
  into.set(value, at);
  return at + value.length;
}
