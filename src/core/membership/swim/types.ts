/**
 * The public face of the membership machine: what goes in, what comes out, what can be seen.
 *
 * The driver's contract:
 * - Effects run in order. After `persistIncarnation` nothing of this machine leaves until the write
 *   is durable; if the write fails the process ends.
 * - One timer is armed for `nextDeadline()`. When it fires the driver lets one poll phase pass, so
 *   that acks already in the socket buffer are read first, then steps `tick`.
 * - Packets are authenticated and decoded before they come in; `source` is where they came from.
 */

import type { Address, Incarnation, NodeId } from "../../base/ids.ts";
import type { Coordinate } from "../vivaldi/coordinate.ts";
import type { SwimConfig } from "./config.ts";
import type {
  MemberStatus,
  NodeRecord,
  RefusalCode,
  SwimDatagram,
  SwimStreamPacket,
} from "./messages.ts";
import type { PeerCounts } from "./peer-counts.ts";

export interface SwimOptions {
  readonly self: NodeRecord;
  /** Rises with every start of the process, also after a wiped disk: wall-clock milliseconds at start. */
  readonly boot: number;
  /** The persisted ceiling, or 0 on a fresh disk. We start above it. */
  readonly incarnationCeiling: Incarnation;
  readonly config: SwimConfig;
  /** Configured peers: probed for ever, never forgotten. (CONF-3) */
  readonly seeds: readonly Address[];
}

export type SwimInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | { readonly kind: "datagram"; readonly source: Address; readonly packet: SwimDatagram }
  | {
      readonly kind: "streamRequest";
      readonly connection: number;
      readonly packet: SwimStreamPacket;
    }
  | { readonly kind: "streamReply"; readonly exchange: number; readonly packet: SwimStreamPacket }
  /** `refused`: the host answered and no process listens there, the sign of a terminated process. */
  | {
      readonly kind: "streamFailed";
      readonly exchange: number;
      readonly refused?: boolean;
      /** Description of the problem, for people. */
      readonly problem?: string;
    }
  /** A datagram could not be written towards this address (interface down, no route). */
  | { readonly kind: "sendFailed"; readonly to: Address }
  | { readonly kind: "join"; readonly seeds: readonly Address[] }
  | { readonly kind: "leave" }
  | { readonly kind: "forceLeave"; readonly id: NodeId }
  | { readonly kind: "broadcast"; readonly payload: Uint8Array }
  | { readonly kind: "setState"; readonly body: Uint8Array }
  | { readonly kind: "setMeta"; readonly meta: Uint8Array }
  /** The driver saw its own loop stall for this long; local health falls. */
  | { readonly kind: "lag"; readonly lagMs: number }
  /** We are so slow that we do less from now on, or well again. */
  | { readonly kind: "restrain"; readonly restraint: Restraint };

/** Activities that a member reduces while its own process is slow. (BP-1) */
export interface Restraint {
  /** Multiplier of times where local health does not require more; 1 or above. */
  readonly timeouts: number;
  /** Share of the probes that are skipped, 0 to 1: never those of suspects and of `leader`. (BP-3) */
  readonly probesSkipped: number;
  /** Share of a packet's bytes that news may use, 0 to 1. */
  readonly newsShare: number;
  /** Leader of the group that we vote in; null if there is none, or if we lead. */
  readonly leader: NodeId | null;
}

export const UNRESTRAINED: Restraint = {
  timeouts: 1,
  probesSkipped: 0,
  newsShare: 1,
  leader: null,
};

export type SwimEffect =
  | { readonly kind: "send"; readonly to: Address; readonly packet: SwimDatagram }
  | {
      /** One request and one reply on a stream; answered by `streamReply` or `streamFailed`. */
      readonly kind: "openStream";
      readonly exchange: number;
      readonly to: Address;
      readonly packet: SwimStreamPacket;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: "answerStream";
      readonly connection: number;
      readonly packet: SwimStreamPacket;
    }
  | { readonly kind: "persistIncarnation"; readonly ceiling: Incarnation }
  | { readonly kind: "memberChanged"; readonly change: MemberChange }
  | { readonly kind: "userEvent"; readonly origin: NodeId; readonly payload: Uint8Array }
  | {
      readonly kind: "peerState";
      readonly id: NodeId;
      readonly boot: number;
      readonly version: number;
      readonly body: Uint8Array;
    }
  /** The farewell has reached everyone it could; the process may exit. */
  | { readonly kind: "leaveDone" }
  /** Another live member bears our name and most peers side with it: the process should end. */
  | { readonly kind: "nameLost"; readonly rival: Address }
  | { readonly kind: "warning"; readonly code: SwimWarning; readonly about: string };

export type SwimWarning =
  | "UNCONFIRMED_PEER" // known for 60 s, never reached
  | "UNCONFIRMED_REMOVED"
  | "STREAM_ONLY" // datagrams fail, the fallback stream works
  | "NAME_CONFLICT"
  | "VERSION_REFUSED"
  | "GOSSIP_OVERFLOW"
  | "JOIN_REFUSED"
  | "JOIN_FAILED" // we know nobody, and this is why the address we tried did not take us in
  | "MEMBERS_FULL"
  | "LOOP_LAG"
  | "INCARNATION_JUMP" // news far above what anyone counted; refused
  | "INCARNATION_EXHAUSTED" // we are at the bound and cannot refute any more
  | "STATE_JUMP" // a version of an embedded state far above the last; refused
  | "STATE_CUT"; // our own embedded state does not fit into a packet

export interface MemberChange {
  readonly kind:
    | "join" // a member is known and alive
    | "update" // its record changed
    | "suspect"
    | "refute" // suspect no more
    | "failed"
    | "leave"
    | "confirmed" // reached directly for the first time
    | "forget"; // reaped, or never confirmed
  readonly member: MemberView;
  readonly from: MemberStatus | null;
  readonly to: MemberStatus | null;
  readonly why: string;
  /** Source of the change: the member itself, its accuser, or ourselves. */
  readonly by: NodeId;
}

export interface MemberView {
  readonly id: NodeId;
  readonly record: NodeRecord;
  readonly status: MemberStatus;
  readonly incarnation: Incarnation;
  readonly confirmed: boolean;
  /** Monotonic time of the last change of status. */
  readonly changedAt: number;
  /** Smoothed direct round trip; null until one was measured. */
  readonly rttMs: number | null;
  /** From the coordinates; null when unknown. */
  readonly rttEstimateMs: number | null;
  /** The latest samples, newest last. */
  readonly rttSamplesMs: readonly number[];
  /** Time since we learned of the member. */
  readonly ageMs: number;
  /** Pings since its passive wait was over, as long as it is not confirmed. */
  readonly confirmAttempts: number;
}

export interface SwimView {
  readonly self: NodeRecord;
  readonly incarnation: Incarnation;
  readonly members: readonly MemberView[];
  /** 0 is healthy; awarenessMaxMultiplier - 1 is worst. */
  readonly healthScore: number;
  readonly coordinate: Coordinate;
  readonly leaving: boolean;
  readonly counts: SwimCounts;
  /** Copied on request only. */
  readonly peers: PeerCounts;
}

/** Counters since start, for metrics. */
interface SwimCounts {
  readonly probes: number;
  readonly probesFailed: number;
  /** Left out since we were slow ourselves. */
  readonly probesSkipped: number;
  readonly indirectProbes: number;
  readonly streamFallbacks: number;
  readonly suspicions: number;
  readonly deaths: number;
  readonly refutations: number;
  readonly gossipInformedDeaths: number;
  readonly pushPulls: number;
  readonly staleStates: number;
  readonly unknownReplies: number;
  readonly refused: Readonly<Partial<Record<RefusalCode, number>>>;
  /** Count of each warning, including those suppressed by rate limiting. */
  readonly warnings: Readonly<Partial<Record<SwimWarning, number>>>;
  readonly queueLength: number;
  readonly queueDropped: number;
}
