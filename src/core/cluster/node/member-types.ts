/**
 * What a member process is made of, what goes in and what comes out.
 *
 * The driver's contract, short because the rules are inside:
 * - Effects are carried out in order; none of them has to be waited for.
 * - Every `readRegion`, `writeRegion` and `syncRegion` is answered by one `region`, every `resolve` by its
 *   answer in its time. Streams are opened, written and closed as `core/cluster/link` asks.
 * - One timer is armed for `nextDeadline()`. When it fires the driver lets one poll phase pass, so that
 *   acks already in the socket buffer are read first, then steps `tick`.
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
  /** How we introduce ourselves on streams. */
  readonly hello: Hello;
  readonly swim: SwimConfig;
  /** Null for a member that votes in no group. */
  readonly electorate: Electorate | null;
  readonly discovery: Omit<DiscoveryOptions, "self">;
  /** The first key seals, all open. */
  readonly ring: KeyRing;
}

export interface Electorate {
  /** All voters of the group, ourselves included. */
  readonly voters: readonly NodeId[];
  readonly config: ElectionConfig;
  /** Higher stands earlier. */
  readonly priority: number;
}

/** What a process draws from, and who may look on. */
export interface MemberSurroundings {
  readonly random: Random;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  readonly rules?: MemberRules;
  readonly watch?: MemberWatch;
}

/** Rules that can be broken one at a time, to plant a mutant; production runs with all of them. */
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

/** For checkers: every step of the machines inside, and every effect when it is really carried out. */
export interface MemberWatch {
  onSwim(input: SwimInput, effects: readonly SwimEffect[]): void;
  onElection(input: ElectionInput, effects: readonly ElectionEffect[]): void;
  /** Whatever it rests on is durable by now. */
  onSwimDone(effect: SwimEffect): void;
  onElectionDone(effect: ElectionEffect): void;
}

export type MemberInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | { readonly kind: "datagram"; readonly source: Address; readonly bytes: Uint8Array }
  /** A datagram could not be written towards this address (interface down, no route). */
  | { readonly kind: "sendFailed"; readonly to: Address }
  | { readonly kind: "region"; readonly region: Region; readonly result: RegionResult }
  | LinkInput
  | {
      readonly kind: "resolved";
      readonly name: string;
      readonly addresses: readonly Address[];
      /** Null when the answer named none. */
      readonly ttlMs: number | null;
    }
  | { readonly kind: "resolveFailed"; readonly name: string; readonly problem: string }
  | MemberCommand;

/** What somebody asks of the member itself. */
export type MemberCommand =
  | {
      readonly kind: "join";
      readonly addresses: readonly Address[];
      readonly requester: AuditRequester;
    }
  /** Says farewell; `left` tells when, in bounded time. */
  | { readonly kind: "leave"; readonly requester: AuditRequester }
  /** An operator knows that a failed member will not return. */
  | { readonly kind: "forceLeave"; readonly id: NodeId; readonly requester: AuditRequester }
  /** How keys are added, used and removed without a restart. */
  | { readonly kind: "setKeys"; readonly ring: KeyRing; readonly requester: AuditRequester }
  /** Gives leadership up, and stays. */
  | { readonly kind: "resign" }
  /** Told to every member once. */
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
  /** The records are read: from now on others hear of us. */
  | { readonly kind: "started" }
  /** The farewell is told, or its time is over. */
  | { readonly kind: "left" }
  /** A record is there and cannot be used: what was promised from it is not known any more. */
  | { readonly kind: "unusable"; readonly region: Region; readonly detail: string }
  /** The process must end: a lost disk, or another member with our name. */
  | { readonly kind: "fatal"; readonly reason: string };
