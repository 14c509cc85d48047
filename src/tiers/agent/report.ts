/** An agent as operators see it: its members and its own status, from what its parts know. */

import type { NodeId } from "../../core/base/ids.ts";
import type { MemberStatus } from "../../core/cluster/swim/messages.ts";
import type { MemberView, SwimView } from "../../core/cluster/swim/types.ts";
import type { KeyRing } from "../../wire/key-ring.ts";
import { formatVersion, PROTOCOL } from "../../wire/version.ts";
import type { AgentConfig } from "./config.ts";
import type { AgentStatus, KeyInfo, MemberInfo } from "./events.ts";
import type { Leadership } from "./leadership.ts";
import type { AgentState } from "./state.ts";

export interface AgentLook {
  readonly config: AgentConfig;
  readonly view: SwimView;
  /** What members last told of themselves. */
  readonly states: ReadonlyMap<NodeId, AgentState>;
  readonly leadership: Leadership;
}

/** Ourselves first. */
export function describeMembers(look: AgentLook): readonly MemberInfo[] {
  const { config, view, leadership } = look;
  const own: MemberInfo = {
    name: config.name,
    address: config.address,
    role: config.role,
    datacenter: config.datacenter,
    state: view.leaving ? "left" : "alive",
    incarnation: view.incarnation,
    rttMs: null,
    health: view.healthScore,
    leader: leadership.isLeader(config.name),
    confirmed: true,
  };
  const others = view.members.filter(({ id }) => id !== view.self.id);
  return [own, ...others.map((member) => describeMember(member, look))];
}

function describeMember(member: MemberView, { states, leadership }: AgentLook): MemberInfo {
  const rttMs = member.rttMs ?? member.rttEstimateMs;
  // The gone have no health; what they said last is not what they are.
  const present = member.status === "alive" || member.status === "suspect";
  return {
    name: member.id,
    address: member.record.address,
    role: member.record.role,
    datacenter: member.record.datacenter,
    state: member.status,
    incarnation: member.incarnation,
    rttMs: rttMs === null ? null : Math.round(rttMs * 1_000) / 1_000,
    health: present ? (states.get(member.id)?.health ?? null) : null,
    leader: leadership.isLeader(member.id),
    confirmed: member.confirmed,
  };
}

export function describeStatus(
  look: AgentLook,
  of: {
    readonly version: string;
    readonly ring: KeyRing;
    readonly keys: readonly KeyInfo[];
    readonly uptimeMs: number;
  },
): AgentStatus {
  const { config, view } = look;
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
    encryption: of.ring.encryption,
    tls: config.tls !== null,
    keys: of.keys,
    incarnation: view.incarnation,
    health: view.healthScore,
    members,
    leaving: view.leaving,
    uptimeMs: of.uptimeMs,
    election: describeElection(look.leadership),
  };
}

function describeElection({ view, group }: Leadership): AgentStatus["election"] {
  if (view === null) return null;
  const { state, term, leader, quorum } = view;
  return { group, state, term, leader, quorum };
}
