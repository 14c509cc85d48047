/** What a ledger's process hears and asks for; what its driver has to do is written beside each effect. */

import type { KeyRing } from "../../../wire/key-ring.ts";
import type { NodeId } from "../../base/ids.ts";
import type { LedgerEffect, LedgerInput } from "../../ledger/node/types.ts";
import type { KeptLinkView } from "../link/kept-link.ts";
import type { LinkEffect, LinkInput } from "../link/types.ts";

export type ProcessInput =
  | LinkInput
  /** So many records, counted from the start of this process, are safe. */
  | { readonly kind: "durable"; readonly count: number }
  /** What clients of this node ask; see `LedgerInput`. */
  | Extract<LedgerInput, { kind: "request" | "watch" | "watchRoom" | "watchEnd" }>
  /** Calls the peers. `identity`: of this node's data directory, which is durable. */
  | { readonly kind: "connect"; readonly identity: string }
  /** Keys for the connections to come. */
  | { readonly kind: "keys"; readonly ring: KeyRing }
  /** Takes no more requests, lets others lead and what is under way finish, then says `idle`. */
  | { readonly kind: "leave" }
  | { readonly kind: "tick" };

export type LogLevel = "info" | "warn" | "error";

export type ProcessEffect =
  | LinkEffect
  /** `append`: to the log, in this order. `answer` and `watched`: to whoever asked. */
  | Exclude<LedgerEffect, { kind: "send" }>
  /** How many groups this node leads has changed; told together, since a take-over moves thousands. */
  | {
      readonly kind: "leading";
      readonly leading: number;
      readonly gained: number;
      readonly lost: number;
    }
  | { readonly kind: "peer"; readonly peer: NodeId; readonly up: boolean }
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  /** Others lead and no request is under way any more, or the time for that is over. */
  | { readonly kind: "idle" };

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
