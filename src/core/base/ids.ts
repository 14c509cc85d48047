/**
 * Names and numbers that every cluster protocol shares. Each is made at an edge (configuration,
 * decoder) and trusted inside.
 */

import { assert } from "./assert.ts";
import type { Brand } from "./brand.ts";

/** A member's name, unique in its cluster. Addresses are attributes; the name is the identity. (C20-27) */
export type NodeId = Brand<string, "NodeId">;

/** `host:port`, or `[v6]:port`. The datagram and the stream listener of a member share it. */
export type Address = Brand<string, "Address">;

/** A member's own version of itself. Only its owner raises it. */
export type Incarnation = Brand<number, "Incarnation">;

/** One election's number. At most one leader exists per term. */
export type Term = Brand<number, "Term">;

export type Role = "gate" | "manager" | "worker";

export const ROLES: readonly Role[] = ["gate", "manager", "worker"];

/**
 * Upper bound of counters from peers: far beyond what any cluster reaches (an election every second takes 8,900,000
 * years), and far enough below 2^53 that adding to one is exact. Decoders reject more.
 */
export const COUNTER_MAX = 2 ** 48 - 1;
/**
 * News that raises a counter by more than this at once is a flipped bit, a defect or a lie, and rejected with an alarm.
 * A member that was down for twelve days, while another refuted once a second, is still within it.
 */
export const COUNTER_JUMP_MAX = 2 ** 20;

export const NODE_ID_BYTES_MAX = 64;
export const ADDRESS_BYTES_MAX = 80;

export function nodeId(text: string): NodeId {
  assert(text.length > 0 && text.length <= NODE_ID_BYTES_MAX, "a node id has 1 to 64 characters");
  return text as NodeId;
}

export function address(text: string): Address {
  assert(text.length > 0 && text.length <= ADDRESS_BYTES_MAX, "an address has 1 to 80 characters");
  return text as Address;
}

export function incarnation(value: number): Incarnation {
  assert(
    Number.isInteger(value) && value >= 0 && value <= COUNTER_MAX,
    "an incarnation is a whole number within its bound",
  );
  return value as Incarnation;
}

export function term(value: number): Term {
  assert(
    Number.isInteger(value) && value >= 0 && value <= COUNTER_MAX,
    "a term is a whole number within its bound",
  );
  return value as Term;
}
