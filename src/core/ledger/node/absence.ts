/**
 * Decides when a job may be reported as absent. A job that was ever acknowledged left a trace with a quorum of some
 * replicas: its own group or, before that is founded, the reservation in a shard. Neither the ring nor a clock tells
 * where: groups outlive the list of nodes they were founded under, and a founding may take any time. So a job is absent
 * once enough nodes say so that every possible quorum includes one of them, twice in a row: between the first answer
 * and the last of one round a reservation may have become a group. (IDEM-22, VSR-26)
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import { parseJobId } from "../job/job-id.ts";
import { decodeShardEntry } from "../keys/shard-entry.ts";
import type { LedgerContext } from "./context.ts";
import type { Group } from "./group.ts";
import type { Routed } from "./router.ts";
import type { ShardApp } from "./shard-app.ts";
import { shardIndex, type Topology } from "./topology.ts";

/** Rounds of "not known" that prove it. */
const ROUNDS = 2;
/** Answer for a job that a shard has promised. */
export const PROMISED = {
  kind: "retry",
  why: "the job is promised and its group is on its way",
} as const;

/** Nodes that may know a group unknown here: its initial replicas first, then all others. */
export function candidates(topology: Topology, group: GroupId): readonly NodeId[] {
  const first = topology.replicas(group);
  return [...first, ...topology.nodes.filter((node) => !first.includes(node))];
}

/** One more node does not know the group: true when that proves that there is none. */
export function isProvenAbsent(topology: Topology, routed: Routed, from: NodeId): boolean {
  routed.absent.add(from);
  // A shard exists for as long as the ledger does.
  if (shardIndex(routed.group) !== null || routed.absent.size < neededOf(topology, routed.group)) {
    return false;
  }
  routed.absent.clear();
  routed.absentRounds++;
  return routed.absentRounds >= ROUNDS;
}

/** A node knows of the job: discards the earlier answers. */
export function mayExist(routed: Routed): void {
  routed.absent.clear();
  routed.absentRounds = 0;
}

/** So many that any quorum of a group's replicas has one among them. */
function neededOf(topology: Topology, group: GroupId): number {
  // Replicas of other kinds are those that founded them: any number, anywhere.
  if (parseJobId(group) === null) return topology.nodes.length;
  const quorum = Math.floor(topology.replicas(group).length / 2) + 1;
  return topology.nodes.length - quorum + 1;
}

/** Whether a shard that we replicate has promised this job, and does not know yet that its group exists. */
export function isPromisedHere({ groups }: LedgerContext, jobId: string): boolean {
  for (const group of groups.values()) {
    const { app } = group;
    if (app.kind !== "shard" || group.replica.state.status === "retired") continue;
    if (isPending(app, jobId) || isInTail(group, app, jobId)) return true;
  }
  return false;
}

function isPending(app: ShardApp, jobId: string): boolean {
  for (const founding of app.state.pendingFoundings()) if (founding.jobId === jobId) return true;
  return false;
}

/** Whether a reservation of the job is in our log but not applied: a client may already have its answer. */
function isInTail({ replica }: Group, app: ShardApp, jobId: string): boolean {
  const { entries, firstSeq } = replica.state;
  for (const { kind, data } of entries.slice(Math.max(0, app.appliedSeq + 1 - firstSeq))) {
    const entry = kind === "op" ? decodeShardEntry(data) : null;
    if (entry?.kind === "reserved" && entry.jobId === jobId) return true;
  }
  return false;
}
