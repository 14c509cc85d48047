/**
 * One group at this node: its replica, the operations that wait for room, and who waits for what.
 * What the entries mean is the application's: a job's history, or a shard of idempotency keys.
 */

import type { NodeId } from "../base/ids.ts";
import type { Durability } from "../ledger/durability.ts";
import type { Operation } from "../vsr/face.ts";
import type { GroupId } from "../vsr/messages.ts";
import type { Replica } from "../vsr/replica.ts";
import type { JobApp } from "./job-app.ts";
import type { ShardApp } from "./shard-app.ts";

/** Where an answer goes. */
export type Reply =
  | { readonly kind: "client"; readonly token: number }
  | { readonly kind: "peer"; readonly node: NodeId; readonly id: number }
  /** The shard that has this job founded. */
  | { readonly kind: "desk"; readonly shard: GroupId; readonly key: string; readonly jobId: string };

/** Someone waits for an event to be committed, at a level. */
export interface CommitWaiter {
  readonly reply: Reply;
  readonly required: Durability;
  readonly deadline: number;
  /** Set when the event is committed and its level is still too low. */
  done: { readonly seq: number; readonly outcome: Outcome } | null;
  /** Answers with "founded" instead of "committed". */
  readonly founding: boolean;
}

export interface Outcome {
  readonly kind: string;
  readonly reason: string | null;
  /** The place where the event was committed first. */
  readonly seq: number;
  readonly duplicate: boolean;
}

export interface Group {
  readonly id: GroupId;
  replica: Replica;
  readonly app: JobApp | ShardApp;
  /** Records of this group handed to the log by this process. */
  appended: number;
  /** The armed deadline; Infinity without one. */
  deadline: number;
  /** Operations that no message carries yet. */
  queue: Operation[];
  dirty: boolean;
  readonly waiters: Map<string, CommitWaiter[]>;
  /** Events committed, whose level is not reached. */
  readonly levelling: Set<string>;
  readonly reads: Map<number, Reply>;
  /** When the primary was last heard, with everything it had committed then. */
  heardAt: number;
  compactedAt: number;
}

export function newGroup(id: GroupId, replica: Replica, app: JobApp | ShardApp): Group {
  return {
    id,
    replica,
    app,
    appended: 0,
    deadline: Number.POSITIVE_INFINITY,
    queue: [],
    dirty: false,
    waiters: new Map(),
    levelling: new Set(),
    reads: new Map(),
    heardAt: Number.NEGATIVE_INFINITY,
    compactedAt: -1,
  };
}

export function waitFor(group: Group, eventId: string, waiter: CommitWaiter): void {
  const waiting = group.waiters.get(eventId);
  if (waiting === undefined) group.waiters.set(eventId, [waiter]);
  else waiting.push(waiter);
}
