/** HTTP/2 frames as bytes (RFC 9113 §4, §6). */

export const FRAME_HEAD_BYTES = 9;

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const ACK = 0x1;
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const WITH_PRIORITY = 0x20;

export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const INTERNAL_ERROR = 2;
export const FLOW_CONTROL_ERROR = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const CONNECT_ERROR = 10;
export const ENHANCE_YOUR_CALM = 11;
export const INADEQUATE_SECURITY = 12;

export const HEADER_TABLE_SIZE = 1;
export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
export const MAX_FRAME_SIZE = 5;
export const MAX_HEADER_LIST_SIZE = 6;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** Initial size of every window. */
export const FIRST_WINDOW_BYTES = 65_535;
export const WINDOW_BYTES_MAX = 2 ** 31 - 1;
/** Stream ids of a client are odd, and end here. */
export const STREAM_ID_MAX = 2 ** 31 - 1;

/** A frame with space for its payload. */
export function frame(type: number, flags: number, stream: number, payloadBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD_BYTES + payloadBytes);
  writeHead(bytes, 0, type, flags, stream, payloadBytes);
  return bytes;
}

export function writeHead(
  into: Buffer,
  at: number,
  type: number,
  flags: number,
  stream: number,
  payloadBytes: number,
): void {
  into[at] = payloadBytes >>> 16;
  into[at + 1] = payloadBytes >>> 8;
  into[at + 2] = payloadBytes;
  into[at + 3] = type;
  into[at + 4] = flags;
  into.writeUInt32BE(stream, at + 5);
}

/** A frame whose payload is a number: RST_STREAM, WINDOW_UPDATE. */
export function numberFrame(type: number, stream: number, number: number): Buffer {
  const bytes = frame(type, 0, stream, 4);
  bytes.writeUInt32BE(number, FRAME_HEAD_BYTES);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [number, number])[]): Buffer {
  const bytes = frame(SETTINGS, 0, 0, 6 * settings.length);
  for (const [at, [id, value]] of settings.entries()) {
    bytes.writeUInt16BE(id, FRAME_HEAD_BYTES + 6 * at);
    bytes.writeUInt32BE(value, FRAME_HEAD_BYTES + 6 * at + 2);
  }
  return bytes;
}

export function goawayFrame(code: number): Buffer {
  const bytes = frame(GOAWAY, 0, 0, 8);
  bytes.writeUInt32BE(0, FRAME_HEAD_BYTES);
  bytes.writeUInt32BE(code, FRAME_HEAD_BYTES + 4);
  return bytes;
}
