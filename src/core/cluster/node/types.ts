/** What a ledger's process hears and asks for; what its driver has to do is written beside each effect. */

import type { KeyRing } from "../../../wire/key-ring.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import type { NodeId } from "../../base/ids.ts";
import type { FileAnswer, FileEffect } from "../../ledger/log/files.ts";
import type { LedgerEffect, LedgerInput } from "../../ledger/node/types.ts";
import type { StoreEvent } from "../../ledger/store/types.ts";
import type { GateHealth } from "../gate-messages.ts";
import type { KeptLinkView } from "../link/kept-link.ts";
import type { LinkEffect, LinkInput, StreamId } from "../link/types.ts";
import type { PeerNews } from "../manager/peers.ts";

export type ProcessInput =
  | LinkInput
  /**
   * Reads the disk and changes nothing before it is found sound: `recovered` follows, or the store's word.
   * `first`: this is the first start on this data directory, whose identity is durable; see `LedgerNode.start`.
   */
  | {
      readonly kind: "open";
      readonly first: "found" | "join" | null;
      readonly identity: string;
    }
  /** Nothing stands in the way: it waits for a clock that is behind its own log, and serves. */
  | { readonly kind: "start" }
  /** A file operation has ended. */
  | FileAnswer
  /** A turn for work on files that takes several; asked for by `wantsTurn`. */
  | { readonly kind: "turn" }
  /** What clients of this node ask; see `LedgerInput`. */
  | Extract<LedgerInput, { kind: "request" | "watch" | "watchRoom" | "watchEnd" }>
  | Extract<LedgerInput, { kind: "passOver" | "mayRest" | "forget" }>
  /** Nobody will take the next start for the first one: the peers may be called. */
  | { readonly kind: "founded" }
  /** To a worker, client, gate or peer that has called. */
  | { readonly kind: "say"; readonly stream: StreamId; readonly message: StreamEnvelope }
  /** A request to a peer, on the connection that this node keeps to it: `peerAnswered` may follow. */
  | { readonly kind: "askPeer"; readonly peer: NodeId; readonly message: StreamEnvelope }
  /** How this node is, for all peers that it reaches and will reach. */
  | { readonly kind: "tellPeers"; readonly health: GateHealth }
  /** Why the disk of this node stores no files, for the same peers; empty: it does. */
  | { readonly kind: "tellDisk"; readonly problem: string }
  /** Keys for the connections to come. */
  | { readonly kind: "keys"; readonly ring: KeyRing }
  /** Takes no more requests, lets others lead and what is under way finish, keeps its state, says `left`. */
  | { readonly kind: "leave" }
  /** Lets others lead from now on, and goes on otherwise. */
  | { readonly kind: "giveUp" }
  | { readonly kind: "tick" };

export type LogLevel = "info" | "warn" | "error";

export type ProcessEffect =
  | LinkEffect
  | FileEffect
  /** `answer` and `watched`: to whoever asked. The rest is for what acts on jobs, and for observers. */
  | Exclude<LedgerEffect, { kind: "send" | "append" | "readArchive" }>
  /** What the store says: for logs, and for those who look on. */
  | { readonly kind: "store"; readonly event: StoreEvent }
  /** The disk is read; `start` is awaited. */
  | { readonly kind: "recovered"; readonly groups: number; readonly replayed: number }
  /** Requests are taken from now on. */
  | { readonly kind: "serving" }
  /** The first start is durable: the driver notes it, and answers `founded`. */
  | { readonly kind: "firstStart"; readonly groups: number }
  /** How many groups this node leads has changed; told together, since a take-over moves thousands. */
  | {
      readonly kind: "leading";
      readonly leading: number;
      readonly gained: number;
      readonly lost: number;
    }
  | PeerNews
  /** How a peer is, as it says. */
  | { readonly kind: "peerHealth"; readonly peer: NodeId; readonly health: GateHealth }
  /** A worker, client or gate says something to whoever stands above, or another manager asks for a blob; see `say`. */
  | {
      readonly kind: "called";
      readonly stream: StreamId;
      readonly role: "worker" | "client" | "manager" | "gate";
      readonly name: string;
      readonly message: StreamEnvelope;
    }
  /** To `askPeer`. */
  | { readonly kind: "peerAnswered"; readonly peer: NodeId; readonly message: StreamEnvelope }
  /** `byPeer`: it has ended the connection itself. */
  | { readonly kind: "callerGone"; readonly stream: StreamId; readonly byPeer: boolean }
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  /** A peer knows of records that our log has lost: it would go on from promises that are forgotten. */
  | { readonly kind: "outdated"; readonly problem: string }
  /**
   * Others lead, nothing is under way, what is kept is kept, or the time for that is over. `leading`: so
   * many groups found nobody else, and wait for this node or for the end of its lease.
   */
  | { readonly kind: "left"; readonly leading: number };

export interface ProcessCounts {
  readonly requests: number;
  readonly answers: number;
  readonly commits: number;
  readonly alarms: number;
  /** Batches of peers that were not taken because the disk was behind. */
  readonly shed: number;
}

export interface PeerView extends KeptLinkView {
  readonly name: NodeId;
  readonly region: string;
  readonly address: string;
  /** Their connection to us is open. */
  readonly heard: boolean;
  readonly receivedBatches: number;
}
