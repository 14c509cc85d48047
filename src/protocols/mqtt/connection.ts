/** One connection to an MQTT server; it carries many concurrent calls, distinguished by packet ids. */

import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { Inbox } from "../target/inbox.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { matchesFilter } from "./filter.ts";
import {
  CONNACK,
  type ConnectOptions,
  DISCONNECT,
  decodePacket,
  encodeAcknowledgement,
  encodeConnect,
  encodeSubscribe,
  encodeUnsubscribe,
  type MqttMessage,
  PINGREQ_BYTES,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  packetIdAt,
  type Qos,
  readLength,
  reasonName,
  type ServerPacket,
  SUBACK,
  UNSUBACK,
} from "./packets.ts";

export type MqttCommand =
  | { readonly kind: "publish"; readonly bytes: Buffer; readonly qos: Qos }
  | {
      readonly kind: "subscribe";
      readonly filter: string;
      readonly qos: Qos;
      readonly kept: boolean;
    }
  | { readonly kind: "receive"; readonly filter: string }
  | { readonly kind: "ping" };

type Call = CarriedCall<MqttCommand>;

const PACKET_IDS = 65_535;
/** Codes from here on are refusals. */
const REFUSALS = 128;

export class MqttConnection implements Connection<MqttCommand> {
  readonly #host: ConnectionHost;
  readonly #options: ConnectOptions;
  readonly #socket: StreamSocket;
  readonly #buffer = new StreamBuffer(this);
  readonly #inbox = new Inbox<MqttMessage>();
  /** By the id of the packet that is to be acknowledged. */
  readonly #unacknowledged = new Map<number, Call>();
  readonly #pings: (Call | "ended")[] = [];
  /** By filter: whether they outlive the iteration. */
  readonly #subscriptions = new Map<string, boolean>();
  #packetId = 0;
  #open = false;
  #problem = "";
  #now = 0;

  constructor(host: ConnectionHost, options: ConnectOptions, now: number) {
    this.#host = host;
    this.#options = options;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(): void {
    this.#socket.write(encodeConnect(this.#options));
  }

  send(call: Call, now: number): void {
    const { command } = call;
    switch (command.kind) {
      case "publish":
        this.#publish(call, command.bytes, command.qos, now);
        return;
      case "subscribe": {
        const id = this.#number(call, now);
        if (id === null) return;
        this.#subscriptions.set(command.filter, command.kept);
        const bytes = encodeSubscribe(id, command.filter, command.qos, this.#options.version);
        call.wrote(bytes.length, 1, now);
        this.#socket.write(bytes);
        return;
      }
      case "receive":
        this.#receive(call, command.filter, now);
        return;
      case "ping":
        this.#pings.push(call);
        call.wrote(PINGREQ_BYTES.length, 1, now);
        this.#socket.write(PINGREQ_BYTES);
    }
  }

  #publish(call: Call, encoded: Buffer, qos: Qos, now: number): void {
    if (qos === 0) {
      call.wrote(encoded.length, 1, now);
      this.#socket.deliver(encoded, call);
      return;
    }
    const id = this.#number(call, now);
    if (id === null) return;
    const bytes = Buffer.from(encoded);
    bytes.writeUInt16BE(id, packetIdAt(bytes));
    call.wrote(bytes.length, 1, now);
    this.#socket.write(bytes);
  }

  /** Returns an unused packet id; null when there is none, and the call has failed. */
  #number(call: Call, now: number): number | null {
    if (this.#unacknowledged.size >= PACKET_IDS) {
      call.failed({ kind: "resources", text: "too many packets wait to be acknowledged" }, now);
      return null;
    }
    do this.#packetId = (this.#packetId % PACKET_IDS) + 1;
    while (this.#unacknowledged.has(this.#packetId));
    this.#unacknowledged.set(this.#packetId, call);
    return this.#packetId;
  }

  #receive(call: Call, filter: string, now: number): void {
    if (!this.#subscriptions.has(filter)) {
      const text = `not subscribed to ${filter} in this iteration: perform subscribe first`;
      call.failed({ kind: "exception", text }, now);
      return;
    }
    this.#inbox.receive(call, ({ topic }) => matchesFilter(topic, filter), now);
  }

  /** A late acknowledgement is ignored; it frees the packet id. */
  forget(call: Call): boolean {
    for (const [id, waiting] of this.#unacknowledged) {
      if (waiting !== call) continue;
      this.#unacknowledged.set(id, ENDED);
      return true;
    }
    const at = this.#pings.indexOf(call);
    if (at >= 0) this.#pings[at] = "ended";
    return at >= 0 || this.#inbox.forget(call);
  }

  reset(): void {
    for (const [filter, kept] of this.#subscriptions) {
      if (kept) continue;
      this.#subscriptions.delete(filter);
      this.#inbox.drop(({ topic }) => matchesFilter(topic, filter));
      const id = this.#number(ENDED, this.#now);
      if (id !== null) this.#socket.write(encodeUnsubscribe(id, filter, this.#options.version));
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    if (!this.#buffer.feed(buffer, end))
      this.#host.lost({ kind: "protocol", text: this.#problem }, now);
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    const text = this.#buffer.begun ? `${failure.text} in mid-answer` : failure.text;
    this.#host.lost({ ...failure, text }, now);
  }

  parse(buffer: Buffer, from: number, end: number): number {
    const size = readLength(buffer, from + 1, end);
    if (size === null) {
      if (end - from < 5) return isServerPacket(buffer[from] ?? 0) ? from : this.#broken("no MQTT");
      return this.#broken("the length of a packet is malformed");
    }
    const { bodyBytesMax } = this.#host.settings;
    if (size.length > bodyBytesMax)
      return this.#broken(`a packet is longer than ${bodyBytesMax} bytes (bodyBytesMax)`);
    const first = buffer[from] ?? 0;
    if (!isServerPacket(first)) return this.#broken("the server sent an invalid MQTT packet");
    const packetEnd = size.end + size.length;
    if (packetEnd > end) {
      this.#buffer.wanted = packetEnd - from;
      return from;
    }
    const body = buffer.subarray(size.end, packetEnd);
    const packet = decodePacket(first, body, this.#options.version);
    if (packet === null) return this.#broken("a packet is malformed");
    const isExpected = this.#open || packet.type === CONNACK;
    if (!isExpected) return this.#broken("the server sent a packet before CONNACK");
    this.#packet(packet, packetEnd - from);
    return this.#problem === "" ? packetEnd : -1;
  }

  #broken(problem: string): -1 {
    this.#problem = problem;
    return -1;
  }

  #packet(packet: ServerPacket, bytes: number): void {
    switch (packet.type) {
      case CONNACK:
        this.#loggedIn(packet.code);
        return;
      case PUBLISH:
        if (packet.message.qos > 0)
          this.#socket.write(
            encodeAcknowledgement(packet.message.qos === 1 ? PUBACK : PUBREC, packet.id),
          );
        this.#inbox.arrived(packet.message, bytes, this.#now);
        return;
      case PUBREL:
        this.#socket.write(encodeAcknowledgement(PUBCOMP, packet.id));
        return;
      case PUBREC:
        this.#received(packet.id, packet.code, bytes);
        return;
      case PUBACK:
      case PUBCOMP:
      case SUBACK:
      case UNSUBACK:
        this.#acknowledged(packet.id, packet.code, bytes);
        return;
      case PINGRESP:
        this.#ponged(bytes);
        return;
      case DISCONNECT: {
        const code = reasonName(packet.code);
        const text = `the server disconnected with ${code}`;
        this.#host.lost(
          { kind: packet.code < REFUSALS ? "reset" : "application", code, text },
          this.#now,
        );
      }
    }
  }

  #loggedIn(code: number): void {
    if (this.#open) this.#problem = "the server sent CONNACK twice";
    else if (code === 0) {
      this.#open = true;
      this.#host.opened(this.#socket.times(this.#now), this.#now);
    } else {
      const name = reasonName(code);
      const text = `the server refused the connection with ${name}`;
      const opening = this.#socket.times(this.#now);
      this.#host.lost({ kind: "application", code: name, text, opening }, this.#now);
    }
  }

  /** First half of the QoS 2 handshake. */
  #received(id: number, code: number, bytes: number): void {
    const call = this.#unacknowledged.get(id);
    if (call === undefined || code >= REFUSALS) {
      this.#acknowledged(id, code, bytes);
      return;
    }
    const release = encodeAcknowledgement(PUBREL, id);
    call.read(bytes, this.#now);
    call.wrote(release.length, 0, this.#now);
    this.#socket.write(release);
  }

  #acknowledged(id: number, code: number, bytes: number): void {
    const call = this.#unacknowledged.get(id);
    if (call === undefined) {
      this.#problem = "a packet was acknowledged that was not sent";
      return;
    }
    this.#unacknowledged.delete(id);
    call.read(bytes, this.#now);
    if (code < REFUSALS) call.answered(null, this.#now);
    else {
      call.status(code);
      call.refused(reasonName(code), `the server answered ${reasonName(code)}`, this.#now);
    }
  }

  #ponged(bytes: number): void {
    const call = this.#pings.shift();
    if (call === undefined) this.#problem = "an unexpected PINGRESP";
    else if (call !== "ended") {
      call.read(bytes, this.#now);
      call.answered(null, this.#now);
    }
  }
}

/** Placeholder for a call that has finished, or that no caller waits for. */
const nothing = (): void => undefined;
const ENDED: Call = {
  command: { kind: "ping" },
  keep: false,
  wrote: nothing,
  read: nothing,
  status: nothing,
  answered: nothing,
  refused: nothing,
  failed: nothing,
};

/** First bytes of packets that a server may send; all except PUBLISH have fixed flags. */
const FIRST_BYTES = new Set([0x20, 0x40, 0x50, 0x62, 0x70, 0x90, 0xb0, 0xd0, 0xe0]);

function isServerPacket(first: number): boolean {
  return FIRST_BYTES.has(first) || (first >> 4 === PUBLISH && (first & 6) !== 6);
}
