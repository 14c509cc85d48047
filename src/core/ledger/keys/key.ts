/**
 * The idempotency key `{client id}:{sequence}:{nonce}`: one text per logical request, the same for all of its retries.
 * Parsed from the right, because client ids may contain colons (`host1.dc1:12345`). A key has exactly one
 * spelling (no leading zeros, lower-case hex), so that equal keys are equal bytes. (IDEM-1, IDEM-2)
 *
 * The shard of a key comes from SHA-256, so that every process and version agrees; the fingerprint distinguishes a
 * retry from another request that used the same key by mistake. (IDEM-5, IDEM-20)
 */

import type { Brand } from "../../base/brand.ts";
import { ringHash } from "../../membership/ring/hash-ring.ts";

/** The whole text of a valid key. Made by `parseKey` only. */
export type IdempotencyKey = Brand<string, "IdempotencyKey">;

const CLIENT_ID_BYTES_MAX = 128;
export const KEY_BYTES_MAX = 256;
const NONCE_CHARACTERS = 16;
export const FINGERPRINT_BYTES = 32;
/** Changing it means consulting both maps for one committed TTL. (IDEM-23) */
export const SHARD_COUNT = 64;
/** The answer to a key that cannot be read. (IDEM-3) */
export const KEY_FORMAT_ERROR = "Invalid idempotency key format";

type KeyParse =
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
function checkClientId(clientId: string): string | null {
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

export function shardOf(key: IdempotencyKey): number {
  return ringHash(key) % SHARD_COUNT;
}

/** Does a record, which begins with its fingerprint, have this one? */
export function hasFingerprint(record: Uint8Array, fingerprint: Uint8Array): boolean {
  for (let i = 0; i < FINGERPRINT_BYTES; i++) if (record[i] !== fingerprint[i]) return false;
  return true;
}
