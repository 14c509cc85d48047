/** An agent as operators see it: its members and its own status, from what its parts know. */

import type { MemberProcess } from "../../core/cluster/node/member-process.ts";
import type { MemberStatus } from "../../core/membership/swim/messages.ts";
import type { MemberView, SwimView } from "../../core/membership/swim/types.ts";
import { formatVersion, PROTOCOL } from "../../wire/version.ts";
import type { AgentConfig } from "./config.ts";
import type { AgentStatus, KeyInfo, MemberInfo } from "./events.ts";

interface AgentLook {
  readonly config: AgentConfig;
  readonly process: MemberProcess;
  view(): SwimView;
  keys(): readonly KeyInfo[];
}

/** Ourselves first. */
export function describeMembers(look: AgentLook): readonly MemberInfo[] {
  const { config, process } = look;
  const view = look.view();
  const own: MemberInfo = {
    name: config.name,
    address: config.address,
    role: config.role,
    datacenter: config.datacenter,
    state: view.leaving ? "left" : "alive",
    incarnation: view.incarnation,
    rttMs: null,
    health: view.healthScore,
    leader: process.leadership.isLeader(config.name),
    confirmed: true,
  };
  const others = view.members.filter(({ id }) => id !== view.self.id);
  return [own, ...others.map((member) => describeMember(member, look))];
}

function describeMember(member: MemberView, { process }: AgentLook): MemberInfo {
  const rttMs = member.rttMs ?? member.rttEstimateMs;
  // Dead members have no health; their last report is out of date.
  const present = member.status === "alive" || member.status === "suspect";
  return {
    name: member.id,
    address: member.record.address,
    role: member.record.role,
    datacenter: member.record.datacenter,
    state: member.status,
    incarnation: member.incarnation,
    rttMs: rttMs === null ? null : Math.round(rttMs * 1_000) / 1_000,
    health: present ? (process.states.get(member.id)?.health ?? null) : null,
    leader: process.leadership.isLeader(member.id),
    confirmed: member.confirmed,
  };
}

export function describeStatus(
  look: AgentLook,
  of: { readonly version: string; readonly uptimeMs: number },
): AgentStatus {
  const { config, process } = look;
  const view = look.view();
  const members: Record<MemberStatus, number> = { alive: 0, suspect: 0, dead: 0, left: 0 };
  for (const { state } of describeMembers(look)) members[state]++;
  return {
    name: config.name,
    address: config.address,
    role: config.role,
    datacenter: config.datacenter,
    cluster: config.cluster,
    environment: config.environment,
    profile: config.profile,
    version: of.version,
    protocol: formatVersion(PROTOCOL),
    encryption: process.ring.encryption,
    tls: config.tls !== null,
    keys: look.keys(),
    incarnation: view.incarnation,
    health: view.healthScore,
    members,
    leaving: view.leaving,
    uptimeMs: of.uptimeMs,
    election: describeElection(process),
  };
}

function describeElection({ election, leadership }: MemberProcess): AgentStatus["election"] {
  if (election === null) return null;
  const { state, term, leader, quorum } = election.snapshot();
  return { group: leadership.group, state, term, leader, quorum };
}
