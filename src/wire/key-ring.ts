/**
 * The keys of a cluster: one seals, all open. Rotation without downtime is three steps on every
 * member, each finished everywhere before the next begins: add the new key, use it, remove the old
 * one. (SEC-5, B-51)
 *
 * A key is known by a fingerprint that reveals nothing of it. Sender keys are derived from it once per
 * session and purpose; cluster and environment enter the derivation, so that a packet of another
 * cluster does not open even under the same secret. (SEC-1, SEC-13, C20-31)
 */

import { ByteWriter, encodeUtf8 } from "../core/base/bytes.ts";
import type { Aead } from "../host/ports/aead.ts";
import { checksumAead } from "./checksum-aead.ts";
import { RING_KEYS_MAX } from "./limits.ts";
import { PLAINTEXT, weakness } from "./secret.ts";

const KEY_BYTES = 32;
const NO_SALT = new Uint8Array(0);

const PLAINTEXT_ID = 0;

export interface RingKey {
  /** Four bytes as a number; sent in the clear to identify the sealing key. */
  readonly id: number;
  readonly secret: Uint8Array;
  readonly aead: Aead;
}

export type Encryption =
  | "aes-256-gcm"
  | "aes-256-gcm (plaintext still accepted)"
  | "none (plaintext)";

type RingRefusal = { readonly ok: false; readonly problem: string };
type RingResult = { readonly ok: true; readonly ring: KeyRing } | RingRefusal;

/** Immutable: a change makes a new ring, and a packet in flight sees either the old or the new one. */
export class KeyRing {
  /** The first seals. */
  readonly keys: readonly RingKey[];
  /** Keys for client greetings on streams only; a client that has one is not a member. */
  readonly clientKeys: readonly RingKey[];
  /** Separates this cluster's keys from another's under the same secret. */
  readonly scope: string;

  private constructor(keys: readonly RingKey[], clientKeys: readonly RingKey[], scope: string) {
    this.keys = keys;
    this.clientKeys = clientKeys;
    this.scope = scope;
  }

  /** The first secret seals; the others only open. */
  static create(aead: Aead, secrets: readonly string[], scope: string): RingResult {
    if (secrets.length === 0) return { ok: false, problem: "a key ring needs at least one secret" };
    const read = keysOf(aead, secrets, []);
    return read.ok ? { ok: true, ring: new KeyRing(read.keys, [], scope) } : read;
  }

  /** The same ring for a node that clients may call, each with one of these secrets. */
  withClients(aead: Aead, secrets: readonly string[]): RingResult {
    const read = keysOf(aead, secrets, this.keys);
    return read.ok ? { ok: true, ring: new KeyRing(this.keys, read.keys, this.scope) } : read;
  }

  get current(): RingKey {
    return this.keys[0] as RingKey;
  }

  find(id: number): RingKey | undefined {
    for (const key of this.keys) if (key.id === id) return key;
    return undefined;
  }

  findOfClient(id: number): RingKey | undefined {
    return this.clientKeys.find((key) => key.id === id);
  }

  /** Everything, nothing, or something in between during a migration. */
  get encryption(): Encryption {
    if (this.current.id === PLAINTEXT_ID) return "none (plaintext)";
    const mixed = this.find(PLAINTEXT_ID) !== undefined;
    return mixed ? "aes-256-gcm (plaintext still accepted)" : "aes-256-gcm";
  }
}

/** The key of one sender's session for one purpose; derived once, since HKDF costs more than a seal. */
export function sessionKey(
  ring: KeyRing,
  key: RingKey,
  purpose: "datagram" | "stream",
  session: Uint8Array,
): Uint8Array {
  const info = new ByteWriter(64);
  info.text("hyperscale/1");
  info.text(purpose);
  // A stream names its cluster inside its hello, so that a stranger gets a proper rejection.
  info.text(purpose === "datagram" ? ring.scope : "");
  return key.aead.derive(key.secret, session, info.take(), KEY_BYTES);
}

export function formatKeyId(id: number): string {
  return id === PLAINTEXT_ID ? PLAINTEXT : id.toString(16).padStart(8, "0");
}

type KeysResult = { readonly ok: true; readonly keys: readonly RingKey[] } | RingRefusal;

function keysOf(aead: Aead, secrets: readonly string[], others: readonly RingKey[]): KeysResult {
  if (secrets.length > RING_KEYS_MAX) {
    return {
      ok: false,
      problem: `${secrets.length} secrets in the ring; at most ${RING_KEYS_MAX} are allowed`,
    };
  }
  const keys: RingKey[] = [];
  for (const text of secrets) {
    const problem = text === PLAINTEXT ? null : weakness(text);
    if (problem !== null) return { ok: false, problem };
    const key = keyOf(aead, text);
    if ([...others, ...keys].some(({ id }) => id === key.id)) {
      return { ok: false, problem: `the secret ${formatKeyId(key.id)} is in the ring twice` };
    }
    keys.push(key);
  }
  return { ok: true, keys };
}

function keyOf(aead: Aead, text: string): RingKey {
  const secret = encodeUtf8(text);
  if (text === PLAINTEXT) return { id: PLAINTEXT_ID, secret, aead: checksumAead };
  return { id: fingerprint(aead, secret), secret, aead };
}

function fingerprint(aead: Aead, secret: Uint8Array): number {
  const bytes = aead.derive(secret, NO_SALT, encodeUtf8("hyperscale/1 key id"), 4);
  const id = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
  return id === PLAINTEXT_ID ? 1 : id;
}
