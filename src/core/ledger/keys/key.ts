/**
 * The idempotency key `{client id}:{sequence}:{nonce}`: one text per logical request, the same for all of
 * its retries. It is read from the right, because client ids may hold colons (`host1.dc1:12345`). A key has
 * exactly one spelling (no leading zeros, lower-case hex), so that equal keys are equal bytes.
 * (IDEM-1, IDEM-2)
 *
 * The shard of a key comes from SHA-256, so that every process and version agrees; the fingerprint tells a
 * retry from another request that took the same key by mistake. (IDEM-5, IDEM-20)
 */

import { assert } from "../../base/assert.ts";
import type { Brand } from "../../base/brand.ts";
import { ByteWriter } from "../../base/bytes.ts";
import type { Random } from "../../base/random.ts";
import { sha256 } from "../../base/sha256.ts";
import { ringHash } from "../../cluster/ring/hash-ring.ts";

/** The whole text of a valid key. Made by `parseKey` and `KeyGenerator` only. */
export type IdempotencyKey = Brand<string, "IdempotencyKey">;

export const CLIENT_ID_BYTES_MAX = 128;
export const KEY_BYTES_MAX = 256;
export const NONCE_CHARACTERS = 16;
export const FINGERPRINT_BYTES = 32;
/** Changing it means consulting both maps for one committed TTL. (IDEM-23) */
export const SHARD_COUNT = 64;
/** What a client is told about a key nobody can read. (IDEM-3) */
export const KEY_FORMAT_ERROR = "Invalid idempotency key format";

export type KeyParse =
  /** No key: the submission is not deduplicated. (IDEM-3) */
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly why: string }
  | {
      readonly kind: "key";
      readonly key: IdempotencyKey;
      readonly clientId: string;
      readonly sequence: number;
      readonly nonce: string;
    };

export function parseKey(text: string): KeyParse {
  if (text === "") return { kind: "none" };
  if (text.length > KEY_BYTES_MAX) return invalid(`longer than ${KEY_BYTES_MAX} bytes`);
  const beforeNonce = text.lastIndexOf(":");
  const beforeSequence = beforeNonce <= 0 ? -1 : text.lastIndexOf(":", beforeNonce - 1);
  if (beforeSequence < 0) return invalid("expected client:sequence:nonce");
  const clientId = text.slice(0, beforeSequence);
  const digits = text.slice(beforeSequence + 1, beforeNonce);
  const nonce = text.slice(beforeNonce + 1);
  const clientProblem = checkClientId(clientId);
  if (clientProblem !== null) return invalid(clientProblem);
  if (!/^(0|[1-9][0-9]{0,15})$/.test(digits)) return invalid("the sequence is no whole number");
  const sequence = Number(digits);
  if (!Number.isSafeInteger(sequence)) return invalid("the sequence is above 2^53 - 1");
  if (!/^[0-9a-f]{16}$/.test(nonce)) {
    return invalid(`the nonce is not ${NONCE_CHARACTERS} lower-case hex characters`);
  }
  return { kind: "key", key: text as IdempotencyKey, clientId, sequence, nonce };
}

function invalid(why: string): KeyParse {
  return { kind: "invalid", why };
}

/** Null when the name can be part of a key. */
export function checkClientId(clientId: string): string | null {
  if (clientId === "") return "the client id is empty";
  if (clientId.length > CLIENT_ID_BYTES_MAX) {
    return `the client id is longer than ${CLIENT_ID_BYTES_MAX} bytes`;
  }
  return /^[\x20-\x7e]+$/.test(clientId) ? null : "the client id is not printable ASCII";
}

/** For decoders: the text is a key in its one spelling. */
export function isKey(text: string): text is IdempotencyKey {
  return parseKey(text).kind === "key";
}

/**
 * Keys of one client process. A new generator has a new nonce and recognises nothing of the old one: a
 * client that must be safe over its own restart stores the key before the first send. (IDEM-4)
 */
export class KeyGenerator {
  readonly #clientId: string;
  readonly #nonce: string;
  #sequence = 0;

  /** Seeded from the host's strong randomness in production: two generators must not share a nonce. */
  constructor(clientId: string, random: Random) {
    assert(checkClientId(clientId) === null, "a client id is 1 to 128 printable ASCII characters");
    this.#clientId = clientId;
    this.#nonce = hex32(random.uint32()) + hex32(random.uint32());
  }

  next(): IdempotencyKey {
    assert(Number.isSafeInteger(this.#sequence), "a generator has 2^53 keys");
    return `${this.#clientId}:${this.#sequence++}:${this.#nonce}` as IdempotencyKey;
  }
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, "0");
}

export function shardOf(key: IdempotencyKey): number {
  return ringHash(key) % SHARD_COUNT;
}

/** What the client asks for, without what may differ between retries: job id, key, callback address. */
export interface SubmissionBody {
  readonly workflows: Uint8Array;
  readonly vus: number;
  readonly timeoutSeconds: number;
  readonly targetDcs: readonly string[];
  readonly reportingConfigs: Uint8Array | null;
  readonly protocolMajor: number;
  readonly protocolMinor: number;
  readonly capabilities: string;
}

/** Every part has its length before it, so no two submissions share their bytes. (IDEM-5) */
export function fingerprintOf(body: SubmissionBody): Uint8Array {
  const writer = new ByteWriter(body.workflows.length + 128);
  writer.text("hyperscale.submission.1");
  writer.bytes(body.workflows);
  writer.varint(body.vus);
  writer.float64(body.timeoutSeconds);
  writer.varint(body.targetDcs.length);
  for (const dc of body.targetDcs) writer.text(dc);
  writer.uint8(body.reportingConfigs === null ? 0 : 1);
  writer.bytes(body.reportingConfigs ?? new Uint8Array(0));
  writer.varint(body.protocolMajor);
  writer.varint(body.protocolMinor);
  writer.text(body.capabilities);
  return sha256(writer.take());
}

/** Does a record, which begins with its fingerprint, have this one? */
export function hasFingerprint(record: Uint8Array, fingerprint: Uint8Array): boolean {
  for (let i = 0; i < FINGERPRINT_BYTES; i++) if (record[i] !== fingerprint[i]) return false;
  return true;
}
