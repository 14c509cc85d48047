/**
 * \n Packets of Socket.IO (protocol 5) on a WebSocket, inside messages of Engine.IO (protocol 4):
 *
 *   "4" "2" "/admin," "7" ["say","hello"]        message, event, namespace, id of its response, arguments
 *   "4" "5" "1-" ["put",{"_placeholder":true,"num":0}], then one binary message for each attachment
 */

import { ATTACHMENTS_MAX, DEPTH_MAX } from "./limits.ts";

export const [ENGINE_OPEN, ENGINE_CLOSE, ENGINE_PING, ENGINE_PONG, ENGINE_MESSAGE, ENGINE_NOOP] = [
  "0",
  "1",
  "2",
  "3",
  "4",
  "6",
] as const;

export const PACKET = {
  connect: 0,
  disconnect: 1,
  event: 2,
  ack: 3,
  connectError: 4,
  binaryEvent: 5,
  binaryAck: 6,
} as const;

export interface Packet {
  readonly type: number;
  readonly namespace: string;
  /** Id of the response; null when none is requested. */
  readonly id: number | null;
  readonly data: unknown;
  /** Binary messages that follow it. */
  readonly attachments: number;
}

const PACKET_TEXT = /^([0-6])(?:(\d{1,4})-)?(?:(\/[^,]*),)?(\d{1,15})?([[{"].*)?$/s;

/** Null for a malformed packet. `text` is a message without the digit of Engine.IO. */
export function readPacket(text: string): Packet | null {
  const parts = PACKET_TEXT.exec(text);
  if (parts === null) return null;
  const [, digit, count, namespace = "/", id, json] = parts;
  const type = Number(digit);
  const isBinary = type === PACKET.binaryEvent || type === PACKET.binaryAck;
  const attachments = Number(count ?? 0);
  if (isBinary !== (count !== undefined) || attachments > ATTACHMENTS_MAX) return null;
  let data: unknown;
  try {
    data = json === undefined ? undefined : JSON.parse(json);
  } catch {
    return null;
  }
  const packet = { type, namespace, id: id === undefined ? null : Number(id), data, attachments };
  return isProper(packet) ? packet : null;
}

function isProper({ data, id, type }: Packet): boolean {
  switch (type) {
    case PACKET.event:
    case PACKET.binaryEvent:
      return Array.isArray(data) && typeof data[0] === "string";
    case PACKET.ack:
    case PACKET.binaryAck:
      return Array.isArray(data) && id !== null;
    case PACKET.disconnect:
      return data === undefined;
    default:
      return data === undefined || (typeof data === "object" && !Array.isArray(data));
  }
}

/** Encoded arguments: text, and the attachments that it refers to. */
export interface Encoded {
  readonly json: string;
  readonly attachments: readonly Buffer[];
}

export function encodeArguments(values: readonly unknown[]): Encoded {
  const attachments: Buffer[] = [];
  const json = JSON.stringify(withoutBytes(values, attachments, 0));
  return { json, attachments };
}

/** A packet preceded by the digit of its Engine.IO message. */
export function packetText(
  type: number,
  namespace: string,
  { id, encoded }: { readonly id: number | null; readonly encoded: Encoded | null },
): string {
  const attachments = encoded?.attachments.length ?? 0;
  const count = attachments === 0 ? "" : `${attachments}-`;
  const prefix = namespace === "/" ? "" : `${namespace},`;
  return `${ENGINE_MESSAGE}${type}${count}${prefix}${id ?? ""}${encoded?.json ?? ""}`;
}

function withoutBytes(value: unknown, attachments: Buffer[], depth: number): unknown {
  if (depth > DEPTH_MAX) throw new RangeError("the arguments of an event are nested too deeply");
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) {
    if (attachments.length >= ATTACHMENTS_MAX)
      throw new RangeError(`an event carries at most ${ATTACHMENTS_MAX} pieces of bytes`);
    attachments.push(
      value instanceof ArrayBuffer
        ? Buffer.from(value)
        : Buffer.from(value.buffer, value.byteOffset, value.byteLength),
    );
    return { _placeholder: true, num: attachments.length - 1 };
  }
  if (Array.isArray(value)) return value.map((item) => withoutBytes(item, attachments, depth + 1));
  if (!isPlain(value)) return value;
  return mapValues(value, (item) => withoutBytes(item, attachments, depth + 1));
}

/** Replaces placeholders by their attachments; throws for one that does not exist. */
export function withBytes(value: unknown, attachments: readonly Buffer[], depth = 0): unknown {
  if (depth > DEPTH_MAX) throw new RangeError("the arguments are nested too deeply");
  if (Array.isArray(value)) return value.map((item) => withBytes(item, attachments, depth + 1));
  if (!isPlain(value)) return value;
  if (value["_placeholder"] !== true)
    return mapValues(value, (item) => withBytes(item, attachments, depth + 1));
  const bytes = attachments[Number(value["num"])];
  if (bytes === undefined) throw new RangeError("a placeholder refers to no bytes");
  return bytes;
}

function mapValues(
  value: Readonly<Record<string, unknown>>,
  map: (item: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, map(item)]));
}

/** Excludes values with their own JSON form, such as a Date. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !("toJSON" in value);
}
