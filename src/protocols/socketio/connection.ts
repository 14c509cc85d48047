/**
 * \n One connection to a namespace of a Socket.IO server, over WebSocket from the first byte; it carries many
 * concurrent calls. Responses are matched by id; unread events are kept.
 *
 *   WebSocket ──▶ open (Engine.IO) ──▶ connect, with auth ──▶ connected | connect error
 */

import { clock } from "../call.ts";
import type { CarriedCall, Connection, ConnectionHost, OpenTimes } from "../target/connection.ts";
import { Inbox } from "../target/inbox.ts";
import type { Handshake } from "../websocket/handshake.ts";
import { type MessageReader, type StreamEnd, WebsocketStream } from "../websocket/stream.ts";
import { SEND_BUFFER_BYTES_MAX } from "./limits.ts";
import {
  ENGINE_CLOSE,
  ENGINE_MESSAGE,
  ENGINE_NOOP,
  ENGINE_OPEN,
  ENGINE_PING,
  ENGINE_PONG,
  type Encoded,
  PACKET,
  type Packet,
  packetText,
  readPacket,
  withBytes,
} from "./packet.ts";

export type SocketioCommand =
  | { readonly kind: "emit" | "request"; readonly encoded: Encoded }
  | { readonly kind: "receive"; readonly event: string }
  | { readonly kind: "disconnect" };

/** An event that the server sent. */
export interface SocketioEvent {
  readonly event: string;
  readonly args: readonly unknown[];
  /** Received packet, without its attachments. */
  readonly data: Buffer;
}

/** Destination of a connection. */
interface Namespace {
  readonly handshake: Handshake;
  readonly namespace: string;
  /** Sent when connecting; null for none. */
  readonly auth: object | null;
}

type Call = CarriedCall<SocketioCommand>;

/** A packet whose attachments are incomplete. */
interface Partial {
  readonly packet: Packet;
  readonly text: string;
  readonly attachments: Buffer[];
}

export class SocketioConnection implements Connection<SocketioCommand>, MessageReader {
  spent = false;
  readonly #host: ConnectionHost;
  readonly #to: Namespace;
  readonly #stream: WebsocketStream;
  #stage: "opening" | "connecting" | "connected" = "opening";
  #openAt = 0;
  #lastId = -1;
  readonly #requests = new Map<number, Call>();
  readonly #inbox = new Inbox<SocketioEvent>();
  #partial: Partial | null = null;
  /** Bytes that have been charged to a call. */
  #readBefore = 0;
  #now = 0;

  constructor(host: ConnectionHost, to: Namespace, now: number) {
    this.#host = host;
    this.#to = to;
    const { bodyBytesMax, insecure } = host.settings;
    const options = { bodyBytesMax, insecure, user: host.user };
    this.#stream = new WebsocketStream(to.handshake, options, this, now);
  }

  /** The server speaks first. */
  streamOpen(now: number): void {
    this.#openAt = now;
  }

  send(call: Call, now: number): void {
    const { command } = call;
    switch (command.kind) {
      case "receive":
        this.#inbox.receive(call, ({ event }) => event === command.event, now);
        return;
      case "disconnect":
        this.spent = true;
        this.#write(call, this.#text(PACKET.disconnect, null, null), []);
        return;
      default:
        this.#emit(call, command.encoded, command.kind === "request");
    }
  }

  #emit(call: Call, encoded: Encoded, answered: boolean): void {
    const { attachments } = encoded;
    const type = attachments.length === 0 ? PACKET.event : PACKET.binaryEvent;
    const id = answered ? ++this.#lastId : null;
    if (id !== null) this.#requests.set(id, call);
    this.#write(call, this.#text(type, id, encoded), attachments);
  }

  #text(type: number, id: number | null, encoded: Encoded | null): string {
    return packetText(type, this.#to.namespace, { id, encoded });
  }

  /** A call without a response finishes when its bytes were handed to the network. */
  #write(call: Call, text: string, attachments: readonly Buffer[]): void {
    const stream = this.#stream;
    if (stream.waitingBytes > SEND_BUFFER_BYTES_MAX) {
      this.forget(call);
      const text = "the send buffer of this connection is full";
      call.failed({ kind: "resources", text }, clock());
      return;
    }
    const before = stream.bytesWritten;
    const sent = call.command.kind === "request" ? undefined : () => call.answered(null, clock());
    const last = attachments.at(-1);
    stream.send(text, last === undefined ? sent : undefined);
    for (const bytes of attachments) stream.send(bytes, bytes === last ? sent : undefined);
    call.wrote(stream.bytesWritten - before, 1, clock());
  }

  /** A late response is recognised by its id, and a late event is kept for the next receiver. */
  forget(call: Call): boolean {
    for (const [id, waiting] of this.#requests)
      if (waiting === call) return this.#requests.delete(id);
    return this.#inbox.forget(call);
  }

  destroy(): void {
    this.#stream.destroy();
  }

  streamMessage(data: Buffer, isBinary: boolean, now: number): void {
    this.#now = now;
    if (isBinary) this.#attachment(data);
    else if (this.#partial !== null) this.#broken("a packet came before the bytes of the last one");
    else this.#message(data.toString("utf8"));
  }

  #message(text: string): void {
    switch (text[0]) {
      case ENGINE_OPEN:
        this.#greeted();
        return;
      case ENGINE_PING:
        this.#stream.send(ENGINE_PONG + text.slice(1));
        return;
      case ENGINE_MESSAGE:
        this.#packet(text.slice(1));
        return;
      case ENGINE_CLOSE:
        this.#host.lost({ kind: "reset", text: "the server closed the connection" }, this.#now);
        return;
      case ENGINE_NOOP:
        return;
      default:
        this.#broken("the server does not speak Engine.IO");
    }
  }

  #greeted(): void {
    if (this.#stage !== "opening") {
      this.#broken("the connection was opened twice");
      return;
    }
    this.#stage = "connecting";
    const { auth } = this.#to;
    const encoded = auth === null ? null : { json: JSON.stringify(auth), attachments: [] };
    this.#stream.send(this.#text(PACKET.connect, null, encoded));
  }

  #packet(text: string): void {
    const packet = this.#stage === "opening" ? null : readPacket(text);
    if (packet === null) this.#broken("a packet is malformed");
    else if (packet.attachments > 0) this.#partial = { packet, text, attachments: [] };
    else this.#took(packet, text, packet.data);
  }

  #attachment(bytes: Buffer): void {
    const partial = this.#partial;
    if (partial === null) {
      this.#broken("bytes came that no packet announced");
      return;
    }
    const { attachments, packet, text } = partial;
    attachments.push(bytes);
    if (attachments.length < packet.attachments) return;
    this.#partial = null;
    try {
      this.#took(packet, text, withBytes(packet.data, attachments));
    } catch {
      this.#broken("a packet refers to bytes that it does not have");
    }
  }

  #took({ id, namespace, type }: Packet, text: string, data: unknown): void {
    if (namespace !== this.#to.namespace) this.#broken("a packet is for another namespace");
    else if (type === PACKET.connect) this.#connected();
    else if (type === PACKET.connectError) this.#refused(data);
    else if (this.#stage !== "connected") this.#broken("a packet came before its namespace");
    else if (type === PACKET.disconnect)
      this.#host.lost({ kind: "reset", text: "the server disconnected" }, this.#now);
    else if (type === PACKET.ack || type === PACKET.binaryAck) this.#answered(id ?? -1, data);
    else this.#received(text, data as readonly [string, ...unknown[]]);
  }

  #connected(): void {
    if (this.#stage === "connected") {
      this.#broken("the namespace was connected twice");
      return;
    }
    this.#stage = "connected";
    this.#bytesRead();
    this.#host.opened(this.#openTimes(), this.#now);
  }

  #openTimes(): OpenTimes {
    const { connectMs, tlsMs } = this.#stream;
    return { connectMs, tlsMs, loginMs: this.#now - this.#openAt };
  }

  /** A middleware of the server refused the connection. */
  #refused(data: unknown): void {
    const { message } = (data ?? {}) as { readonly message?: unknown };
    const text = typeof message === "string" ? message : "the server refused the connection";
    const opening = this.#openTimes();
    this.#host.lost({ kind: "application", code: "CONNECT_ERROR", text, opening }, this.#now);
  }

  #answered(id: number, values: unknown): void {
    const call = this.#requests.get(id);
    if (call === undefined) {
      if (id > this.#lastId) this.#broken("an unexpected response");
      return;
    }
    this.#requests.delete(id);
    call.read(this.#bytesRead(), this.#now);
    call.answered(values, this.#now);
  }

  #received(text: string, [event, ...args]: readonly [string, ...unknown[]]): void {
    const message = { event, args, data: Buffer.from(text) };
    this.#inbox.arrived(message, this.#bytesRead(), this.#now);
  }

  /** Bytes since the last call. */
  #bytesRead(): number {
    const { bytesRead } = this.#stream;
    const bytes = bytesRead - this.#readBefore;
    this.#readBefore = bytesRead;
    return bytes;
  }

  streamEnded({ kind, text }: StreamEnd, now: number): void {
    const where = this.#partial === null ? "" : " in mid-answer";
    this.#host.lost({ kind, text: `${text}${where}` }, now);
  }

  #broken(text: string): void {
    this.#host.lost({ kind: "protocol", text }, this.#now);
  }
}
