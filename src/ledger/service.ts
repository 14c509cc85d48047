/** The process behind a ledger node's interface, as the interface sees it. */

import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { WatchItem, WatchRequest } from "../core/ledger/node/watch.ts";
import type { Background } from "../host/background.ts";
import type { Metric } from "../host/control/prometheus.ts";
import type { AuditEvent, AuditRequester } from "../host/ports/audit.ts";
import type { AuditPage, AuditQuery } from "./audit.ts";
import type { LedgerConfig } from "./config.ts";
import type { RedactSpec } from "./redaction.ts";
import type { HostStatus } from "./status.ts";

export type OnAnswer = (answer: LedgerAnswer) => void;

/** A group's name, which is a job's id for jobs; the view; whether this node leads it from now on. */
export type OnLeads = (group: string, view: number, leads: boolean) => void;

export type OnItems = (items: readonly WatchItem[]) => void;

/** A watch under way. */
export interface Watching {
  /** So many more items may come. */
  makeRoom(count: number): void;
  end(): void;
}

/** Debug views for operators. */
export type DebugViews = Readonly<Record<string, () => unknown>>;

export interface LedgerService {
  readonly config: LedgerConfig;
  readonly ready: boolean;
  /** Serves requests, but accepts no more work. */
  readonly isDraining: boolean;
  /** Why it should get no work, though it serves; null: nothing is wrong. */
  readonly problem: string | null;
  /** Warning that the clock is ahead of a peer's; null if clocks agree. */
  readonly clockWarning: string | null;
  /** Null while the node starts. */
  readonly node: LedgerNode | null;
  readonly background: Background;
  readonly redactSpec: RedactSpec;
  wall(): number;
  /** `onAnswer` is called once. */
  request(request: LedgerRequest, requester: AuditRequester, onAnswer: OnAnswer): void;
  /** `onItems` is called in the turn that commits; at most `room` items arrive until more credit is granted. */
  watch(request: WatchRequest, room: number, onItems: OnItems): Watching;
  /**
   * Called in the turn in which this node starts or stops leading a group; the view is the fence of what it does as
   * owner. The returned function unsubscribes. (VSR-32)
   */
  onLeads(listener: OnLeads): () => void;
  audit(query: AuditQuery): Promise<AuditPage>;
  status(): HostStatus | null;
  /** Metrics of the application on the node in the same process. */
  readonly metricsAbove: readonly Metric[];
  readonly viewsAbove: DebugViews;
  /** Into the audit log. */
  note(event: AuditEvent): void;
}
