/**
 * The layout of a sealed packet: one datagram, or the payload of one stream frame.
 *
 *      0  1   format version
 *      1  1   kind: data, greeting, introduction
 *      2  4   key id: which key of the ring
 *      6 12   session of the sender: random at its start, salt of its key
 *     18  8   session of the receiver, as far as the sender knows it; zeros in a greeting
 *     26  6   counter: rises with every packet of the session, and is the nonce
 *     32      ciphertext, then 16 bytes of tag
 *
 * The 32 bytes in the clear are authenticated with the rest. A sender's key is derived once from the
 * ring's secret and its session; a counter is never used twice in a session, so no (key, nonce) pair
 * ever repeats. Naming the receiver's session is what defeats replay across restarts: see `guard.ts`.
 */

import { assert } from "../core/base/assert.ts";
import { familiarText } from "../core/base/bytes.ts";
import { carve } from "../core/base/slab.ts";
import type { Aead } from "../host/ports/aead.ts";

const FORMAT_VERSION = 1;
export const SESSION_BYTES = 12;
const PEER_TAG_BYTES = 8;
const HEADER_BYTES = 32;
const TAG_BYTES = 16;
export const SEAL_OVERHEAD_BYTES = HEADER_BYTES + TAG_BYTES;
const NONCE_BYTES = 12;
const KEY_ID_AT = 2;
const SESSION_AT = 6;
const PEER_AT = 18;
const COUNTER_AT = 26;
const COUNTER_BYTES = 6;

export const NO_PEER = new Uint8Array(PEER_TAG_BYTES);

const KINDS = ["data", "greeting", "introduction"] as const;
export type PacketKind = (typeof KINDS)[number];

/** Where fresh unpredictable bytes come from; in the simulator, from its seed. */
export type Entropy = (count: number) => Uint8Array;

/** Numeric fields of a header; the two sessions are compared in place. */
export interface Heading {
  readonly kind: PacketKind;
  readonly keyId: number;
  readonly counter: number;
}

interface Header extends Heading {
  readonly session: Uint8Array;
  readonly peer: Uint8Array;
}

type HeaderProblem = "short" | "version" | "kind";

/** Cheap: decides nothing about authenticity, so that rubbish is dropped at the price of a few loads. */
export function readHeader(packet: Uint8Array): Heading | HeaderProblem {
  if (packet.length < SEAL_OVERHEAD_BYTES) return "short";
  if (packet[0] !== FORMAT_VERSION) return "version";
  const kind = KINDS[packet[1] ?? KINDS.length];
  if (kind === undefined) return "kind";
  return {
    kind,
    keyId: readUint32(packet, KEY_ID_AT),
    counter: readCounter(packet),
  };
}

/** The sender's session: a view, not a copy. */
export function sessionOf(packet: Uint8Array): Uint8Array {
  return packet.subarray(SESSION_AT, SESSION_AT + SESSION_BYTES);
}

/** The sender's session as a key for maps, one character per byte. */
export function sessionText(packet: Uint8Array): string {
  return familiarText(packet, SESSION_AT, SESSION_BYTES);
}

export function isFrom(packet: Uint8Array, session: Uint8Array): boolean {
  return holdsAt(packet, SESSION_AT, session);
}

export function isFor(packet: Uint8Array, peer: Uint8Array): boolean {
  return holdsAt(packet, PEER_AT, peer);
}

export function sealPacket(
  aead: Aead,
  key: Uint8Array,
  header: Header,
  plain: Uint8Array,
): Uint8Array {
  assert(header.session.length === SESSION_BYTES, "a session has its length");
  const packet = carve(HEADER_BYTES + plain.length + TAG_BYTES);
  packet[0] = FORMAT_VERSION;
  packet[1] = KINDS.indexOf(header.kind);
  writeUint32(packet, KEY_ID_AT, header.keyId);
  // Byte by byte: a copy of so few costs less than the call that would make it.
  for (let i = 0; i < SESSION_BYTES; i++) packet[SESSION_AT + i] = header.session[i] ?? 0;
  for (let i = 0; i < PEER_TAG_BYTES; i++) packet[PEER_AT + i] = header.peer[i] ?? 0;
  writeCounter(packet, header.counter);
  aead.seal(key, nonceOf(packet), packet, HEADER_BYTES, plain);
  return packet;
}

/** The plaintext, or null when the packet is not what a holder of the key made. */
export function openPacket(aead: Aead, key: Uint8Array, packet: Uint8Array): Uint8Array | null {
  return aead.open(key, nonceOf(packet), packet, HEADER_BYTES);
}

export function peerTag(session: Uint8Array): Uint8Array {
  return session.slice(0, PEER_TAG_BYTES);
}

function holdsAt(packet: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (packet[at + i] !== wanted[i]) return false;
  return true;
}

/** Reused by every call: sealing and opening never yield, and ciphers copy their nonce. */
const nonce = new Uint8Array(NONCE_BYTES);

/** Six zero bytes and the counter. */
function nonceOf(packet: Uint8Array): Uint8Array {
  for (let i = 0; i < COUNTER_BYTES; i++) {
    nonce[NONCE_BYTES - COUNTER_BYTES + i] = packet[COUNTER_AT + i] ?? 0;
  }
  return nonce;
}

function readUint32(from: Uint8Array, at: number): number {
  const high = ((from[at] ?? 0) << 24) | ((from[at + 1] ?? 0) << 16);
  return (high | ((from[at + 2] ?? 0) << 8) | (from[at + 3] ?? 0)) >>> 0;
}

function writeUint32(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 24;
  into[at + 1] = value >>> 16;
  into[at + 2] = value >>> 8;
  into[at + 3] = value;
}

/** Six bytes: the counter is too large for the integers that shifts work on. */
function readCounter(from: Uint8Array): number {
  const high = ((from[COUNTER_AT] ?? 0) << 8) | (from[COUNTER_AT + 1] ?? 0);
  return high * 2 ** 32 + readUint32(from, COUNTER_AT + 2);
}

function writeCounter(into: Uint8Array, counter: number): void {
  const high = Math.floor(counter / 2 ** 32);
  into[COUNTER_AT] = high >>> 8;
  into[COUNTER_AT + 1] = high;
  writeUint32(into, COUNTER_AT + 2, counter % 2 ** 32);
}
