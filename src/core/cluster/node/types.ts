/** Inputs and effects of a ledger process. Each effect documents what the driver has to do. */

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
   * Reads the disk, and changes nothing before it is found intact: `recovered` or a store event follows. `first`: the
   * first start on this data directory, whose identity is durable; see `LedgerNode.start`.
   */
  | {
      readonly kind: "open";
      readonly first: "found" | "join" | null;
      readonly identity: string;
    }
  /** Starts serving, after waiting for a clock that is behind its own log. */
  | { readonly kind: "start" }
  /** A file operation has completed. */
  | FileAnswer
  /** A turn for file work that takes several; requested by `wantsTurn`. */
  | { readonly kind: "turn" }
  /** Requests of clients of this node; see `LedgerInput`. */
  | Extract<LedgerInput, { kind: "request" | "watch" | "watchRoom" | "watchEnd" }>
  | Extract<LedgerInput, { kind: "passOver" | "mayRest" | "forget" }>
  /** The first start is recorded: the peers may be dialled. */
  | { readonly kind: "founded" }
  /** Sends to a worker, client, gate or peer that has connected. */
  | { readonly kind: "say"; readonly stream: StreamId; readonly message: StreamEnvelope }
  /** Sends a request to a peer over the link to it; `peerAnswered` may follow. */
  | { readonly kind: "askPeer"; readonly peer: NodeId; readonly message: StreamEnvelope }
  /** Health of this node, for all peers connected now or later. */
  | { readonly kind: "tellPeers"; readonly health: GateHealth }
  /** Reason why the disk of this node stores no files, for the same peers; empty if it works. */
  | { readonly kind: "tellDisk"; readonly problem: string }
  /** Keys for new connections. */
  | { readonly kind: "keys"; readonly ring: KeyRing }
  /**
   * Refuses new requests, hands over leadership, lets requests in progress finish, saves its state, and emits `left`.
   */
  | { readonly kind: "leave" }
  /** Hands over leadership, and continues otherwise. */
  | { readonly kind: "giveUp" }
  | { readonly kind: "tick" };

export type LogLevel = "info" | "warn" | "error";

export type ProcessEffect =
  | LinkEffect
  | FileEffect
  /** `answer` and `watched` go to the caller. The rest is for the application and for observers. */
  | Exclude<LedgerEffect, { kind: "send" | "append" | "readArchive" }>
  /** Event of the store, for logs and observers. */
  | { readonly kind: "store"; readonly event: StoreEvent }
  /** The disk is read; `start` is expected. */
  | { readonly kind: "recovered"; readonly groups: number; readonly replayed: number }
  /** Requests are accepted from now on. */
  | { readonly kind: "serving" }
  /** The first start is durable: the driver records it, and answers `founded`. */
  | { readonly kind: "firstStart"; readonly groups: number }
  /** The number of groups led by this node has changed; batched, because a failover moves thousands. */
  | {
      readonly kind: "leading";
      readonly leading: number;
      readonly gained: number;
      readonly lost: number;
    }
  | PeerNews
  /** Health that a peer reports about itself. */
  | { readonly kind: "peerHealth"; readonly peer: NodeId; readonly health: GateHealth }
  /** Message of a worker, client or gate for the application, or a blob request of another manager; see `say`. */
  | {
      readonly kind: "called";
      readonly stream: StreamId;
      readonly role: "worker" | "client" | "manager" | "gate";
      readonly name: string;
      readonly message: StreamEnvelope;
    }
  /** Answer to `askPeer`. */
  | { readonly kind: "peerAnswered"; readonly peer: NodeId; readonly message: StreamEnvelope }
  /** `byPeer`: the peer closed the connection itself. */
  | { readonly kind: "callerGone"; readonly stream: StreamId; readonly byPeer: boolean }
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  /** A peer knows of records that our log has lost: continuing would break forgotten promises. */
  | { readonly kind: "outdated"; readonly problem: string }
  /**
   * The leave is complete: others lead, nothing is in progress and everything is saved, or the time for that is over.
   * `leading`: groups without a successor, which wait for this node or for the end of its lease.
   */
  | { readonly kind: "left"; readonly leading: number };

export interface ProcessCounts {
  readonly requests: number;
  readonly answers: number;
  readonly commits: number;
  readonly alarms: number;
  /** Batches of peers rejected because the disk was behind. */
  readonly shed: number;
}

export interface PeerView extends KeptLinkView {
  readonly name: NodeId;
  readonly region: string;
  readonly address: string;
  /** The peer's connection to us is open. */
  readonly heard: boolean;
  readonly receivedBatches: number;
}
