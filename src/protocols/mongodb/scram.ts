/**
 * Client side of one SCRAM login (RFC 5802, RFC 7677): both sides prove that they know the password without sending it.
 * Uses SHA-256, or SHA-1 with MongoDB's own digest where the server supports nothing better.
 */

import { createHash, createHmac, pbkdf2Sync, timingSafeEqual } from "node:crypto";

export type ScramMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-1";

/** Rejects a server that tries to keep the client busy. */
const ITERATIONS_MAX = 1_000_000;
const ITERATIONS_MIN = 4_096;
const HEADER = "n,,";

export class Scram {
  readonly mechanism: ScramMechanism;
  readonly #hash: "sha1" | "sha256";
  readonly #password: string;
  readonly #bare: string;
  readonly #nonce: string;
  #signature = Buffer.alloc(0);

  constructor(mechanism: ScramMechanism, user: string, password: string, nonce: string) {
    this.mechanism = mechanism;
    this.#hash = mechanism === "SCRAM-SHA-256" ? "sha256" : "sha1";
    const digest = createHash("md5").update(`${user}:mongo:${password}`).digest("hex");
    this.#password = mechanism === "SCRAM-SHA-256" ? password : digest;
    const name = user.replaceAll("=", "=3D").replaceAll(",", "=2C");
    this.#bare = `n=${name},r=${nonce}`;
    this.#nonce = nonce;
  }

  first(): Buffer {
    return Buffer.from(`${HEADER}${this.#bare}`);
  }

  /** Null for a malformed challenge. */
  proof(challenge: string): Buffer | null {
    const parts = partsOf(challenge);
    const [nonce = "", salt = ""] = [parts.get("r"), parts.get("s")];
    const iterations = Number(parts.get("i"));
    const sane = iterations >= ITERATIONS_MIN && iterations <= ITERATIONS_MAX;
    if (!nonce.startsWith(this.#nonce) || nonce === this.#nonce || !sane) return null;
    const bytes = this.#hash === "sha256" ? 32 : 20;
    const salted = pbkdf2Sync(
      this.#password,
      Buffer.from(salt, "base64"),
      iterations,
      bytes,
      this.#hash,
    );
    const clientKey = this.#hmac(salted, "Client Key");
    const withoutProof = `c=${Buffer.from(HEADER).toString("base64")},r=${nonce}`;
    const authMessage = `${this.#bare},${challenge},${withoutProof}`;
    const stored = createHash(this.#hash).update(clientKey).digest();
    const signed = this.#hmac(stored, authMessage);
    const proof = clientKey.map((byte, at) => byte ^ (signed[at] ?? 0));
    this.#signature = this.#hmac(this.#hmac(salted, "Server Key"), authMessage);
    return Buffer.from(`${withoutProof},p=${Buffer.from(proof).toString("base64")}`);
  }

  /** Returns true when the server knows the password, too. */
  verified(last: string): boolean {
    const given = Buffer.from(partsOf(last).get("v") ?? "", "base64");
    const expected = this.#signature;
    return given.length === expected.length && given.length > 0 && timingSafeEqual(given, expected);
  }

  #hmac(key: Uint8Array, text: string): Buffer<ArrayBuffer> {
    return Buffer.from(createHmac(this.#hash, key).update(text).digest());
  }
}

function partsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));
}
