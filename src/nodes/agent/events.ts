/** External view of an agent: events as they happen, members and status on demand. */

import type { MemberEvent } from "../../core/cluster/node/member-events.ts";
import type { MemberStatus } from "../../core/membership/swim/messages.ts";
import type { Encryption } from "../../wire/key-ring.ts";

export interface MemberInfo {
  readonly name: string;
  readonly address: string;
  readonly role: string;
  readonly datacenter: string;
  readonly state: MemberStatus;
  readonly incarnation: number;
  /** Smoothed round trip, else the coordinates' estimate; null for ourselves and when unknown. */
  readonly rttMs: number | null;
  /** The member's own health score: 0 is healthy, 7 is worst; null until it has reported one. */
  readonly health: number | null;
  /** True for the leader of its group. */
  readonly leader: boolean;
  /** Reached directly at least once. */
  readonly confirmed: boolean;
}

export type AgentEvent = MemberEvent & { readonly at: string };

export interface AgentStatus {
  readonly name: string;
  readonly address: string;
  readonly role: string;
  readonly datacenter: string;
  readonly cluster: string;
  readonly environment: string;
  readonly profile: string;
  readonly version: string;
  readonly protocol: string;
  readonly encryption: Encryption;
  readonly tls: boolean;
  readonly keys: readonly KeyInfo[];
  readonly incarnation: number;
  readonly health: number;
  readonly members: Readonly<Record<MemberStatus, number>>;
  readonly leaving: boolean;
  readonly uptimeMs: number;
  readonly election: {
    readonly group: string;
    readonly state: string;
    readonly term: number;
    readonly leader: string | null;
    readonly quorum: number;
  } | null;
}

export interface KeyInfo {
  /** A fingerprint; reveals nothing of the key. */
  readonly id: string;
  /** Seals what leaves. */
  readonly current: boolean;
  /** Packets opened with it since the start: when an old key's count stops growing, the key may be removed. */
  readonly opened: number;
}
