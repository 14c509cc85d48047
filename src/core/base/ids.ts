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

/** term x 2^20 + sequence: the order of everything a line of leaders ever commanded. */
export type FenceToken = Brand<number, "FenceToken">;

export type Role = "gate" | "manager" | "worker";

export const ROLES: readonly Role[] = ["gate", "manager", "worker"];

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
    Number.isSafeInteger(value) && value >= 0,
    "an incarnation is a safe non-negative integer",
  );
  return value as Incarnation;
}

export function term(value: number): Term {
  assert(Number.isSafeInteger(value) && value >= 0, "a term is a safe non-negative integer");
  return value as Term;
}
