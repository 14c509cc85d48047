/** AES-256-GCM and HKDF-SHA-256 from the platform. */

import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import type { Aead } from "./ports/aead.ts";

const CIPHER = "aes-256-gcm";
const TAG_BYTES = 16;

/** Importing a key costs as much as a short seal; sessions keep theirs for their lifetime. */
const imported = new WeakMap<Uint8Array, KeyObject>();

function keyObject(key: Uint8Array): KeyObject {
  const held = imported.get(key);
  if (held !== undefined) return held;
  const made = createSecretKey(key);
  imported.set(key, made);
  return made;
}

export const nodeAead: Aead = {
  seal: (key, nonce, packet, headBytes, plain) => {
    const cipher = createCipheriv(CIPHER, keyObject(key), nonce);
    cipher.setAAD(packet.subarray(0, headBytes));
    packet.set(cipher.update(plain), headBytes);
    cipher.final();
    packet.set(cipher.getAuthTag(), headBytes + plain.length);
  },
  open: (key, nonce, packet, headBytes) => {
    const border = packet.length - TAG_BYTES;
    if (border < headBytes) return null;
    const decipher = createDecipheriv(CIPHER, keyObject(key), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(packet.subarray(0, headBytes));
    decipher.setAuthTag(packet.subarray(border));
    const plain = decipher.update(packet.subarray(headBytes, border));
    try {
      decipher.final();
    } catch {
      // The tag does not match: an expected failure, which Node reports by throwing.
      return null;
    }
    return plain;
  },
  derive: (secret, salt, info, length) =>
    new Uint8Array(hkdfSync("sha256", secret, salt, info, length)),
};
