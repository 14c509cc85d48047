/** AES-256-GCM and HKDF-SHA-256 from the platform. */

import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import type { Aead } from "../ports/aead.ts";

const CIPHER = "aes-256-gcm";
const TAG_BYTES = 16;

/** Importing a key costs as much as a short seal; sessions keep theirs for as long as they live. */
const imported = new WeakMap<Uint8Array, KeyObject>();

function keyObject(key: Uint8Array): KeyObject {
  const held = imported.get(key);
  if (held !== undefined) return held;
  const made = createSecretKey(key);
  imported.set(key, made);
  return made;
}

export const nodeAead: Aead = {
  seal: (key, nonce, aad, plain) => {
    const cipher = createCipheriv(CIPHER, keyObject(key), nonce);
    cipher.setAAD(aad);
    const text = cipher.update(plain);
    cipher.final();
    const sealed = new Uint8Array(text.length + TAG_BYTES);
    sealed.set(text);
    sealed.set(cipher.getAuthTag(), text.length);
    return sealed;
  },
  open: (key, nonce, aad, sealed) => {
    if (sealed.length < TAG_BYTES) return null;
    const border = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, keyObject(key), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(aad);
    decipher.setAuthTag(sealed.subarray(border));
    const plain = decipher.update(sealed.subarray(0, border));
    try {
      decipher.final();
    } catch {
      // The tag does not fit: an expected refusal, which Node reports by throwing.
      return null;
    }
    return plain;
  },
  derive: (secret, salt, info, length) =>
    new Uint8Array(hkdfSync("sha256", secret, salt, info, length)),
};
