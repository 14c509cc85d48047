/** Audit log entries of a member: every change of membership and leadership, with its source. (SWIM-12) */

import type { AuditEvent, AuditKind, AuditRequester } from "../../../host/ports/audit.ts";
import { type Address, type NodeId, nodeId } from "../../base/ids.ts";
import type { MemberChange } from "../../membership/swim/types.ts";
import type { LeaderNews } from "./member-events.ts";

/** "confirmed" only means that we have reached a member ourselves. */
const KIND_OF: Readonly<Record<MemberChange["kind"], AuditKind | null>> = {
  join: "member.joined",
  update: "member.updated",
  suspect: "member.suspected",
  refute: "member.updated",
  failed: "member.failed",
  leave: "member.left",
  confirmed: null,
  forget: "member.forgotten",
};

/** Member that records the entries. */
export interface AuditObserver {
  readonly self: string;
  readonly addressOf: (id: NodeId) => Address | undefined;
}

export function memberEntry(change: MemberChange, observer: AuditObserver): AuditEvent | null {
  const { kind, member, from, to, why, by } = change;
  const noted = kind === "leave" && by !== member.id ? "member.removed" : KIND_OF[kind];
  if (noted === null) return null;
  const { address, role, datacenter } = member.record;
  const { incarnation } = member;
  return {
    kind: noted,
    subject: member.id,
    requester: requesterOf(by, observer),
    detail: { address, role, datacenter, from, to, incarnation, why },
  };
}

export function leaderEntry(news: LeaderNews, observer: AuditObserver): AuditEvent {
  const { group, leader, term, why } = news;
  const by = leader ?? observer.self;
  return {
    kind: "leader.changed",
    subject: group,
    requester: requesterOf(nodeId(by), observer),
    detail: { leader, term, why },
  };
}

function requesterOf(by: NodeId, { self, addressOf }: AuditObserver): AuditRequester {
  if (by === self) return { kind: "self", name: self };
  return { kind: "peer", name: by, address: addressOf(by) ?? "" };
}
