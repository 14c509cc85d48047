/** Packets of MQTT 3.1.1 and 5: encodes client packets and decodes server packets. */

export type MqttVersion = 4 | 5;
export type Qos = 0 | 1 | 2;

export const [
  CONNACK,
  PUBLISH,
  PUBACK,
  PUBREC,
  PUBREL,
  PUBCOMP,
  SUBACK,
  UNSUBACK,
  PINGRESP,
  DISCONNECT,
] = [2, 3, 4, 5, 6, 7, 9, 11, 13, 14] as const;

export interface MqttMessage {
  readonly topic: string;
  readonly qos: Qos;
  readonly retained: boolean;
  readonly data: Buffer;
}

export interface ConnectOptions {
  readonly version: MqttVersion;
  readonly clientId: string;
  readonly username: string;
  readonly password: string;
  readonly cleanStart: boolean;
}

const EMPTY = Buffer.alloc(0);
export const PINGREQ_BYTES = Buffer.of(0xc0, 0);

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function packet(first: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  let left = body.length;
  do {
    const digit = left % 128;
    left = Math.floor(left / 128);
    length.push(left > 0 ? digit | 0x80 : digit);
  } while (left > 0);
  return Buffer.concat([Buffer.of(first, ...length), body]);
}

/** The keep-alive is off: silent clients are not disconnected, and no timer runs per user. */
export function encodeConnect(options: ConnectOptions): Buffer {
  const { cleanStart, clientId, password, username, version } = options;
  const flags =
    (username === "" ? 0 : 0x80) | (password === "" ? 0 : 0x40) | (cleanStart ? 0x02 : 0);
  return packet(
    0x10,
    text("MQTT"),
    Buffer.of(version, flags, 0, 0),
    version === 5 ? Buffer.of(0) : EMPTY,
    text(clientId),
    username === "" ? EMPTY : text(username),
    password === "" ? EMPTY : text(password),
  );
}

/** A PUBLISH in two parts, with the packet id between them, where it has one. */
export function encodePublish(
  topic: string,
  data: Uint8Array,
  { qos, retain, version }: { qos: Qos; retain: boolean; version: MqttVersion },
): Buffer {
  const id = qos === 0 ? EMPTY : Buffer.alloc(2);
  const properties = version === 5 ? Buffer.of(0) : EMPTY;
  return packet(0x30 | (qos << 1) | (retain ? 1 : 0), text(topic), id, properties, data);
}

/** Offset of the packet id in an encoded PUBLISH. */
export function packetIdAt(publish: Buffer): number {
  let at = 1;
  while (((publish[at] ?? 0) & 0x80) !== 0) at++;
  return at + 1 + 2 + publish.readUInt16BE(at + 1);
}

export function encodeSubscribe(
  id: number,
  filter: string,
  qos: Qos,
  version: MqttVersion,
): Buffer {
  const properties = version === 5 ? Buffer.of(0) : EMPTY;
  return packet(0x82, Buffer.of(id >> 8, id & 255), properties, text(filter), Buffer.of(qos));
}

export function encodeUnsubscribe(id: number, filter: string, version: MqttVersion): Buffer {
  const properties = version === 5 ? Buffer.of(0) : EMPTY;
  return packet(0xa2, Buffer.of(id >> 8, id & 255), properties, text(filter));
}

/** Successful PUBACK, PUBREC, PUBREL and PUBCOMP. */
export function encodeAcknowledgement(type: number, id: number): Buffer {
  return Buffer.of((type << 4) | (type === PUBREL ? 2 : 0), 2, id >> 8, id & 255);
}

/** A server packet, with the fields that a client needs. */
export type ServerPacket =
  | { readonly type: typeof CONNACK; readonly code: number }
  | { readonly type: typeof PUBLISH; readonly id: number; readonly message: MqttMessage }
  | {
      readonly type: typeof PUBACK | typeof PUBREC | typeof PUBREL | typeof PUBCOMP;
      readonly id: number;
      readonly code: number;
    }
  | { readonly type: typeof SUBACK | typeof UNSUBACK; readonly id: number; readonly code: number }
  | { readonly type: typeof PINGRESP }
  | { readonly type: typeof DISCONNECT; readonly code: number };

/** Null for a malformed packet. `body` is valid only now. */
export function decodePacket(
  first: number,
  body: Buffer,
  version: MqttVersion,
): ServerPacket | null {
  const type = first >> 4;
  const flags = first & 15;
  switch (type) {
    case CONNACK:
      return flags === 0 && body.length >= 2 ? { type, code: body[1] ?? 0 } : null;
    case PUBLISH:
      return publishOf(flags, body, version);
    case PUBACK:
    case PUBREC:
    case PUBREL:
    case PUBCOMP: {
      if (flags !== (type === PUBREL ? 2 : 0) || body.length < 2) return null;
      return { type, id: body.readUInt16BE(0), code: version === 5 ? (body[2] ?? 0) : 0 };
    }
    case SUBACK:
    case UNSUBACK: {
      if (flags !== 0 || body.length < 2 || (type === SUBACK && body.length < 3)) return null;
      // One filter per packet: one code, the last byte. MQTT 3.1.1 has none for UNSUBACK.
      const code = body.length > 2 ? (body.at(-1) ?? 0) : 0;
      return { type, id: body.readUInt16BE(0), code };
    }
    case PINGRESP:
      return flags === 0 && body.length === 0 ? { type } : null;
    case DISCONNECT:
      return version === 5 && flags === 0 ? { type, code: body[0] ?? 0 } : null;
    default:
      return null;
  }
}

function publishOf(flags: number, body: Buffer, version: MqttVersion): ServerPacket | null {
  const qos = (flags >> 1) & 3;
  if (qos === 3 || body.length < 2) return null;
  const topicEnd = 2 + body.readUInt16BE(0);
  let at = topicEnd + (qos === 0 ? 0 : 2);
  if (at > body.length) return null;
  const id = qos === 0 ? 0 : body.readUInt16BE(topicEnd);
  if (version === 5) {
    const properties = readLength(body, at);
    if (properties === null || properties.end + properties.length > body.length) return null;
    at = properties.end + properties.length;
  }
  const message = {
    topic: body.toString("utf8", 2, topicEnd),
    qos: qos as Qos,
    retained: (flags & 1) === 1,
    data: Buffer.from(body.subarray(at)),
  };
  return { type: PUBLISH, id, message };
}

/** Reads a length of up to four bytes; null when it is incomplete or longer. */
export function readLength(
  buffer: Buffer,
  from: number,
  end = buffer.length,
): { readonly length: number; readonly end: number } | null {
  let length = 0;
  for (let at = from; at < end && at < from + 4; at++) {
    const digit = buffer[at] ?? 0;
    length += (digit & 127) * 128 ** (at - from);
    if (digit < 128) return { length, end: at + 1 };
  }
  return null;
}

/** Names of refusal codes. MQTT 5 has codes from 128; 3.1.1 only five, at the login. */
const REASONS: Readonly<Record<number, string>> = {
  1: "UNACCEPTABLE_PROTOCOL_VERSION",
  2: "IDENTIFIER_REJECTED",
  3: "SERVER_UNAVAILABLE",
  4: "BAD_USER_NAME_OR_PASSWORD",
  5: "NOT_AUTHORIZED",
  128: "UNSPECIFIED_ERROR",
  129: "MALFORMED_PACKET",
  130: "PROTOCOL_ERROR",
  131: "IMPLEMENTATION_SPECIFIC_ERROR",
  132: "UNSUPPORTED_PROTOCOL_VERSION",
  133: "CLIENT_IDENTIFIER_NOT_VALID",
  134: "BAD_USER_NAME_OR_PASSWORD",
  135: "NOT_AUTHORIZED",
  136: "SERVER_UNAVAILABLE",
  137: "SERVER_BUSY",
  138: "BANNED",
  139: "SERVER_SHUTTING_DOWN",
  142: "SESSION_TAKEN_OVER",
  143: "TOPIC_FILTER_INVALID",
  144: "TOPIC_NAME_INVALID",
  145: "PACKET_IDENTIFIER_IN_USE",
  147: "RECEIVE_MAXIMUM_EXCEEDED",
  149: "PACKET_TOO_LARGE",
  150: "MESSAGE_RATE_TOO_HIGH",
  151: "QUOTA_EXCEEDED",
  153: "PAYLOAD_FORMAT_INVALID",
  154: "RETAIN_NOT_SUPPORTED",
  155: "QOS_NOT_SUPPORTED",
  158: "SHARED_SUBSCRIPTIONS_NOT_SUPPORTED",
};

export function reasonName(code: number): string {
  return REASONS[code] ?? `REASON_${code}`;
}
