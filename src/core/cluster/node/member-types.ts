/**
 * Configuration, inputs and effects of a member process.
 *
 * Contract of the driver:
 * - Execute effects in order, without waiting for any of them.
 * - Answer every `readRegion`, `writeRegion` and `syncRegion` with one `region`, and every `resolve` within its
 *   timeout. Open, write and close streams as `core/cluster/link` asks.
 * - Arm one timer for `nextDeadline()`. When it fires, let one poll phase pass, so that
 *   acks already in the socket buffer are read first, then step `tick`.
 */

import type { AuditEvent, AuditRequester } from "../../../host/ports/audit.ts";
import type { Compressor } from "../../../host/ports/compressor.ts";
import type { LogFields, LogLevel } from "../../../host/ports/log.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import type { Entropy } from "../../../wire/seal.ts";
import type { Address, NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { ElectionConfig } from "../../membership/election/config.ts";
import { ELECTION_RULES, type ElectionRules } from "../../membership/election/rules.ts";
import type { ElectionEffect, ElectionInput } from "../../membership/election/types.ts";
import type { SwimConfig } from "../../membership/swim/config.ts";
import type { NodeRecord } from "../../membership/swim/messages.ts";
import { SWIM_RULES, type SwimRules } from "../../membership/swim/rules.ts";
import type { SwimEffect, SwimInput } from "../../membership/swim/types.ts";
import type { LinkEffect, LinkInput } from "../link/types.ts";
import {
  BARRIER_RULES,
  type BarrierRules,
  type Region,
  type RegionEffect,
  type RegionResult,
} from "./member-barrier.ts";
import type { DiscoveryEffect, DiscoveryOptions } from "./member-discovery.ts";
import type { MemberEvent } from "./member-events.ts";

export interface MemberOptions {
  readonly self: NodeRecord;
  /** Our greeting on streams. */
  readonly hello: Hello;
  readonly swim: SwimConfig;
  /** Null for a member that votes in no group. */
  readonly electorate: Electorate | null;
  readonly discovery: Omit<DiscoveryOptions, "self">;
  /** The first key seals, all keys open. */
  readonly ring: KeyRing;
}

export interface Electorate {
  /** All voters of the group, including this member. */
  readonly voters: readonly NodeId[];
  readonly config: ElectionConfig;
  /** Members with a higher priority start an election earlier. */
  readonly priority: number;
}

/** Dependencies of a process, and optional observers. */
export interface MemberSurroundings {
  readonly random: Random;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  readonly rules?: MemberRules;
  readonly watch?: MemberWatch;
}

/** Rules that tests can break one at a time; production runs with all of them. */
export interface MemberRules {
  readonly swim: SwimRules;
  readonly election: ElectionRules;
  readonly barrier: BarrierRules;
}

export const MEMBER_RULES: MemberRules = {
  swim: SWIM_RULES,
  election: ELECTION_RULES,
  barrier: BARRIER_RULES,
};

/** Observer for checkers: sees every step of the inner machines, and every effect when it is executed. */
export interface MemberWatch {
  onSwim(input: SwimInput, effects: readonly SwimEffect[]): void;
  onElection(input: ElectionInput, effects: readonly ElectionEffect[]): void;
  /** Everything the effect depends on is durable by now. */
  onSwimDone(effect: SwimEffect): void;
  onElectionDone(effect: ElectionEffect): void;
}

export type MemberInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | { readonly kind: "datagram"; readonly source: Address; readonly bytes: Uint8Array }
  /** A datagram could not be sent to this address (interface down, no route). */
  | { readonly kind: "sendFailed"; readonly to: Address }
  | { readonly kind: "region"; readonly region: Region; readonly result: RegionResult }
  | LinkInput
  | {
      readonly kind: "resolved";
      readonly name: string;
      readonly addresses: readonly Address[];
      /** Null if the answer had no TTL. */
      readonly ttlMs: number | null;
    }
  | { readonly kind: "resolveFailed"; readonly name: string; readonly problem: string }
  | MemberCommand;

/** Command to the member itself. */
export type MemberCommand =
  | {
      readonly kind: "join";
      readonly addresses: readonly Address[];
      readonly requester: AuditRequester;
    }
  /** Leaves the cluster; `left` follows in bounded time. */
  | { readonly kind: "leave"; readonly requester: AuditRequester }
  /** Removes a failed member that will not return. */
  | { readonly kind: "forceLeave"; readonly id: NodeId; readonly requester: AuditRequester }
  /** Replaces the keys without a restart. */
  | { readonly kind: "setKeys"; readonly ring: KeyRing; readonly requester: AuditRequester }
  /** Gives up leadership, and stays. */
  | { readonly kind: "resign" }
  /** Delivers an event to every member once. */
  | { readonly kind: "broadcast"; readonly payload: Uint8Array };

export type MemberEffect =
  | { readonly kind: "datagram"; readonly to: Address; readonly bytes: Uint8Array }
  | RegionEffect
  | DiscoveryEffect
  | LinkEffect
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly event: string;
      readonly fields: LogFields;
    }
  | { readonly kind: "event"; readonly event: MemberEvent }
  | { readonly kind: "audit"; readonly entry: AuditEvent }
  /** The records are read; from now on the member contacts others. */
  | { readonly kind: "started" }
  /** The leave was announced or timed out. */
  | { readonly kind: "left" }
  /** A record exists but is unusable: the promises based on it are lost. */
  | { readonly kind: "unusable"; readonly region: Region; readonly detail: string }
  /** The process must terminate: the disk is lost, or another member has our name. */
  | { readonly kind: "fatal"; readonly reason: string };
