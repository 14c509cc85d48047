/**
 * One group at this node: its replica, the operations waiting for space, and the waiters. The meaning of the entries
 * belongs to the application: a job's history, a shard of idempotency keys, or the state of a registered kind.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId, LogEntry } from "../group/messages.ts";
import type { Replica } from "../group/replica.ts";
import type { Operation } from "../group/types.ts";
import type { Durability } from "../job/durability.ts";
import type { Outcome } from "./application.ts";
import type { JobApp } from "./job-app.ts";
import type { PeerRequest } from "./messages.ts";
import type { RegisteredApp } from "./registered-app.ts";
import type { Reply } from "./reply.ts";
import type { ShardApp } from "./shard-app.ts";
import type { LedgerEffect } from "./types.ts";

/** Someone waits for an event to be committed, at a level. */
export interface CommitWaiter {
  readonly group: Group;
  readonly eventId: string;
  readonly reply: Reply;
  /** To be sent on, should another node become primary. */
  readonly request: PeerRequest;
  readonly required: Durability;
  readonly deadline: number;
  /** Set when the event is committed and its level is still too low. */
  outcome: Outcome | null;
}

/** A strong read that waits for its quorum. */
export interface PendingRead {
  readonly group: Group;
  readonly token: number;
  readonly reply: Reply;
  readonly request: PeerRequest;
  readonly deadline: number;
}

/** Application of a group: a job, a shard of keys, or a registered kind. */
export type GroupApp = JobApp | ShardApp | RegisteredApp;

export interface Group {
  readonly id: GroupId;
  readonly replica: Replica;
  readonly app: GroupApp;
  /** Entries up to this one were on our disk when this process began; -1: none was. */
  readonly recoveredSeq: number;
  /** Operations that no message carries yet. */
  queue: Operation[];
  readonly waiters: Map<string, CommitWaiter[]>;
  /** Committed events whose level is not reached yet. */
  readonly levelling: Set<string>;
  readonly reads: Map<number, PendingRead>;
  /**
   * Everything acknowledged before this time of our clock is folded in here. Only a strong read proves it: a message
   * from the primary may be late, or its sender deposed. (SESS-3)
   */
  freshAt: number;
  compactedSeq: number;
  /** Bytes of the entries committed since. */
  uncompactedBytes: number;
  /** When the timer of this group goes off, at the latest; it may be early. */
  armedAt: number;
}

export function newGroup(
  id: GroupId,
  replica: Replica,
  app: GroupApp,
  recoveredSeq: number,
): Group {
  return {
    id,
    recoveredSeq,
    replica,
    app,
    queue: [],
    waiters: new Map(),
    levelling: new Set(),
    reads: new Map(),
    freshAt: Number.NEGATIVE_INFINITY,
    compactedSeq: -1,
    uncompactedBytes: 0,
    armedAt: Number.POSITIVE_INFINITY,
  };
}

/** Nodes that durably store everything up to `seq`, as far as this primary knows. */
export function holders(group: Group, seq: number, self: NodeId): NodeId[] {
  const { state } = group.replica;
  const own = state.durableView === state.lastNormalView ? state.durableSeq : -1;
  return state.members.filter((member) => {
    const acked = member === self ? own : (state.peers.get(member)?.acked ?? -1);
    return acked >= seq;
  });
}

/** The `applied` effect for an entry that was folded in. */
export function appliedOf(
  { id: group, recoveredSeq }: Group,
  entry: LogEntry,
  outcome: string = entry.kind,
): Extract<LedgerEffect, { kind: "applied" }> {
  return { kind: "applied", group, entry, outcome, isRecovered: entry.seq <= recoveredSeq };
}
