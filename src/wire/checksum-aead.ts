/**
 * The stand-in for encryption: a CRC-32 over key, nonce, header and text; nothing is hidden. It detects damage, a wrong
 * key and a wrong header, but no attacker. Two users: plaintext clusters, which need an explicit development flag, and
 * the simulator, where a real cipher would only cost time.
 */

import type { Aead } from "../host/ports/aead.ts";

const TAG_BYTES = 16;
const CHECKSUM_BYTES = 4;

export const checksumAead: Aead = {
  seal: (key, nonce, packet, headBytes, plain) => {
    packet.set(plain, headBytes);
    const border = headBytes + plain.length;
    writeUint32(packet, border, checksum(key, nonce, packet, border));
    packet.fill(0, border + CHECKSUM_BYTES);
  },
  open: (key, nonce, packet, headBytes) => {
    const border = packet.length - TAG_BYTES;
    if (border < headBytes) return null;
    for (let i = border + CHECKSUM_BYTES; i < packet.length; i++) if (packet[i] !== 0) return null;
    const intact = readUint32(packet, border) === checksum(key, nonce, packet, border);
    return intact ? packet.subarray(headBytes, border) : null;
  },
  derive: (secret, salt, info, length) => {
    const derived = new Uint8Array(length);
    let state = crc(crc(crc(0, secret), salt), info);
    const place = new Uint8Array(1);
    for (let i = 0; i < length; i++) {
      place[0] = i;
      state = crc(state, place);
      derived[i] = state & 0xff;
    }
    return derived;
  },
};

/** Over key, nonce, and the packet up to its tag: head and text lie there side by side. */
function checksum(key: Uint8Array, nonce: Uint8Array, packet: Uint8Array, border: number): number {
  return crc(crc(crc(0, key), nonce), packet, border);
}

/** Four tables of 256, for four bytes at a time; signed, so that the loop stays in small integers. */
const TABLE = crcTables(4);

function crcTables(count: number): Int32Array {
  const tables = new Int32Array(count * 256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb8_8320 : value >>> 1;
    tables[byte] = value;
  }
  for (let i = 256; i < tables.length; i++) {
    const before = tables[i - 256] ?? 0;
    tables[i] = (tables[before & 0xff] ?? 0) ^ (before >>> 8);
  }
  return tables;
}

/** CRC-32 (IEEE), continued from `state`. */
function crc(state: number, bytes: Uint8Array, length = bytes.length): number {
  let value = ~state;
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    value ^=
      (bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24);
    value =
      (TABLE[768 + (value & 0xff)] ?? 0) ^
      (TABLE[512 + ((value >>> 8) & 0xff)] ?? 0) ^
      (TABLE[256 + ((value >>> 16) & 0xff)] ?? 0) ^
      (TABLE[value >>> 24] ?? 0);
  }
  for (; at < length; at++) {
    value = (TABLE[(value ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (value >>> 8);
  }
  return ~value >>> 0;
}

function writeUint32(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 24;
  into[at + 1] = value >>> 16;
  into[at + 2] = value >>> 8;
  into[at + 3] = value;
}

function readUint32(from: Uint8Array, at: number): number {
  let value = 0;
  for (let i = 0; i < 4; i++) value = value * 256 + (from[at + i] ?? 0);
  return value;
}
