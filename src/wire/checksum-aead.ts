/**
 * The stand-in for encryption: a CRC-32 over key, nonce, header and text, and nothing hidden. It finds
 * damage, a wrong key and a wrong header, but no attacker. Two users: plaintext clusters, which need an
 * explicit development flag, and the simulator, where a real cipher would only cost time.
 */

import { carve } from "../core/base/slab.ts";
import type { Aead } from "../ports/aead.ts";

const TAG_BYTES = 16;

export const checksumAead: Aead = {
  seal: (key, nonce, aad, plain) => {
    const sealed = carve(plain.length + TAG_BYTES);
    sealed.set(plain);
    writeUint32(sealed, plain.length, checksum(key, nonce, aad, plain));
    return sealed;
  },
  open: (key, nonce, aad, sealed) => {
    if (sealed.length < TAG_BYTES) return null;
    const plain = sealed.subarray(0, sealed.length - TAG_BYTES);
    for (let i = plain.length + 4; i < sealed.length; i++) if (sealed[i] !== 0) return null;
    return readUint32(sealed, plain.length) === checksum(key, nonce, aad, plain) ? plain : null;
  },
  derive: (secret, salt, info, length) => {
    const derived = new Uint8Array(length);
    let state = crc(crc(crc(0, secret), salt), info);
    for (let i = 0; i < length; i++) {
      state = crc(state, Uint8Array.of(i & 0xff));
      derived[i] = state & 0xff;
    }
    return derived;
  },
};

function checksum(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plain: Uint8Array): number {
  return crc(crc(crc(crc(0, key), nonce), aad), plain);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb8_8320 : value >>> 1;
  return value >>> 0;
});

/** CRC-32 (IEEE), continued from `state`. */
export function crc(state: number, bytes: Uint8Array): number {
  let value = ~state >>> 0;
  for (let i = 0; i < bytes.length; i++) {
    value = (TABLE[(value ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (value >>> 8);
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
