import type { Random } from "../../../base/random.ts";
import { type IdempotencyKey, isKey } from "../key.ts";

/** Keys of one client process: one nonce, and a sequence that counts up. (IDEM-4) */
export class KeyGenerator {
  readonly #clientId: string;
  readonly #nonce: string;
  #sequence = 0;

  constructor(clientId: string, random: Random) {
    this.#clientId = clientId;
    this.#nonce = hex32(random.uint32()) + hex32(random.uint32());
  }

  next(): IdempotencyKey {
    const text = `${this.#clientId}:${this.#sequence++}:${this.#nonce}`;
    if (!isKey(text)) throw new Error(`not a key: ${text}`);
    return text;
  }
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, "0");
}
