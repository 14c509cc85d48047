/**
 * Messages of ledger nodes on a connection of their own. The first message describes the ledger as its sender knows it:
 * nodes that disagree about the members must not replicate to each other, since they would found the same group with
 * different replicas. (VSR-26)
 */

import { COUNTER_MAX } from "../../core/base/ids.ts";
import type { GateHealth } from "../../core/cluster/gate-messages.ts";
import { OVERLOAD_STATES } from "../../core/cluster/views.ts";
import { ERROR_BYTES_MAX, ID_BYTES_MAX, TRANSFER_BYTES_MAX } from "../limits.ts";
import {
  bool,
  bytes,
  counter,
  nullable,
  oneOf,
  optional,
  required,
  struct,
  text,
} from "../schema.ts";

export interface LedgerOpening {
  /** Over all nodes, their regions and how groups are placed; equal on all nodes of one ledger. */
  readonly digest: string;
  /** The same for people: "n1@use1 n2@euw1 …, 3 replicas". */
  readonly described: string;
  /** Identity of the sender's data directory: a new directory under its name has forgotten its promises. (VSR-30) */
  readonly identity: string;
  /** The last durable record of the sender's log; null if the sender does not report it. */
  readonly lastRecord: number | null;
}

export const opening = struct<LedgerOpening>("LedgerOpening", {
  digest: required(1, text(ID_BYTES_MAX, 1)),
  described: optional(2, text(ERROR_BYTES_MAX), ""),
  identity: required(3, text(ID_BYTES_MAX, 1)),
  lastRecord: optional(4, nullable(counter(COUNTER_MAX)), null),
});

export interface LedgerMark {
  readonly lastRecord: number;
  /** Whether the node was asked to accept no more work. */
  readonly draining: boolean;
  /** Health of a gate; null for other nodes, and for senders that do not report it. */
  readonly health: GateHealth | null;
  /** The sender's wall clock; 0 if the sender does not report it. */
  readonly wallMs: number;
  /** Why the disk of a manager stored no file of late; empty: it does. */
  readonly diskProblem: string;
}

const gateHealth = struct<GateHealth>("GateHealth", {
  hasDatacenter: required(1, bool),
  datacenters: required(2, counter(COUNTER_MAX)),
  pressure: required(3, oneOf(OVERLOAD_STATES)),
  forwarded: required(4, counter(COUNTER_MAX)),
  forwardable: required(5, counter(COUNTER_MAX)),
});

/** Up to where the speaker's log is durable: no later opening of the same directory may be behind it. */
export const mark = struct<LedgerMark>("LedgerMark", {
  lastRecord: required(1, counter(COUNTER_MAX)),
  draining: optional(2, bool, false),
  health: optional(3, nullable(gateHealth), null),
  wallMs: optional(4, counter(COUNTER_MAX), 0),
  diskProblem: optional(5, text(ERROR_BYTES_MAX), ""),
});

export const opened = struct<{ readonly node: string }>("LedgerOpened", {
  node: required(1, text(ID_BYTES_MAX, 1)),
});

/** Messages of one turn in their own encoding; the ledger decodes them. */
export const batch = bytes(TRANSFER_BYTES_MAX - 64);
