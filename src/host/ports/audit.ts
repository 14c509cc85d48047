/**
 * The audit log as services see it: requests with their requester, recorded where they take effect. (SWIM-12, AD-20.6)
 * Implemented by `src/audit`; a service without one records nothing.
 */

/** Every kind of entry. The part before the dot is its group; names are only ever added. */
export const AUDIT_KINDS = [
  /** A process opened its audit log; entries between the last one and this may be missing. */
  "audit.opened",
  /** Dropped entries, counted. */
  "audit.dropped",
  /** An unreadable audit log was moved away and a new one begun. */
  "audit.replaced",
  "member.joined",
  "member.updated",
  "member.suspected",
  "member.failed",
  "member.left",
  /** An operator declared that a failed member will not return. */
  "member.removed",
  /** Removed from our table: long dead, or never reached. */
  "member.forgotten",
  "leader.changed",
  "node.leaving",
  "node.joining",
  "keys.reloaded",
  "keys.refused",
  "ledger.founded",
  "ledger.replaced",
  "ledger.leads",
  "ledger.alarm",
  /** A program wrote jobs and events over a stream, counted when it ended. */
  "ledger.written",
  "job.cancelled",
  /** Over the ledger's interface, or by a client of the cluster. */
  "job.submitted",
  /** An event of a job, written over the ledger's interface. */
  "job.event",
  /** A client of the cluster cancelled, paused, resumed or scaled it. */
  "job.controlled",
  "node.drained",
  "node.removed",
  "queue.role",
  "queue.cancelled",
  "queue.retried",
  "queue.deleted",
  "queue.limited",
  /** A graph, or a load test with its workflow file. */
  "queue.submitted",
  /** A file was stored for tasks. */
  "queue.stored",
  "schedule.put",
  "schedule.paused",
  "schedule.run",
  "schedule.removed",
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditRequester {
  /**
   * `operator` used a control interface, `client` a credential of clients, `worker` one of workers, `peer` is another
   * node that said so, `self` is this node's own protocol, `system` is the operating system (a signal, a start).
   */
  readonly kind: "operator" | "client" | "worker" | "peer" | "self" | "system";
  /** Name of the operator as the client gave it, of the peer, or of the signal; may be empty. */
  readonly name: string;
  /** Credential of the request: the fingerprint of a token, or "loopback". Never the token. */
  readonly credential?: string;
  readonly address?: string;
}

export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

export interface AuditEvent {
  readonly kind: AuditKind;
  /** Subject of the event: a member, a leader group, a job, a task, a schedule, a node. */
  readonly subject: string;
  readonly requester: AuditRequester;
  readonly detail?: AuditDetail;
}

export interface AuditCounts {
  readonly recorded: number;
  /** Entries that were not written, since this process started. */
  readonly dropped: number;
}

export interface Audit {
  readonly counts: AuditCounts;
  /** Never waits and never throws; when there is no room the entry is counted instead. */
  record(event: AuditEvent): void;
}

/** For the owner that opens it, and so must close it. */
export interface OpenAudit extends Audit {
  /** Makes recorded entries durable; never rejects. */
  close(): Promise<void>;
}
