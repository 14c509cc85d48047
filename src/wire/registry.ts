/**
 * Every message that may travel on a stream: its number for ever, its schema, its priority class and
 * who may send it to whom. Nothing else decodes. (CODEC-1, BEX-9, spec 20 section 16)
 */

import { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import type { PeerRole } from "./claims.ts";
import * as jobs from "./messages/jobs.ts";
import * as ledger from "./messages/ledger.ts";
import { swimStreamPacket } from "./messages/membership.ts";
import * as nodes from "./messages/nodes.ts";
import type { Decoded, Type, ValueOf } from "./schema.ts";

export type Priority = "critical" | "high" | "normal" | "low";
export const PRIORITIES: readonly Priority[] = ["critical", "high", "normal", "low"];

export interface MessageKind<Value> {
  readonly number: number;
  readonly type: Type<Value>;
  readonly priority: Priority;
  /** `from>to`; "any" stands for every member's role. */
  readonly directions: readonly string[];
}

function kind<Value>(
  number: number,
  type: Type<Value>,
  priority: Priority,
  ...directions: string[]
): MessageKind<Value> {
  return { number, type, priority, directions };
}

export const MESSAGES = {
  membership: kind(1, swimStreamPacket, "critical", "any>any"),
  refusal: kind(2, nodes.refusal, "critical", "any>any", "gate>client", "manager>client"),

  jobSubmission: kind(
    16,
    jobs.jobSubmission,
    "high",
    "client>gate",
    "client>manager",
    "gate>manager",
  ),
  jobAck: kind(17, jobs.jobAck, "high", "gate>client", "manager>client", "manager>gate"),
  jobCancelRequest: kind(18, jobs.jobCancelRequest, "critical", "client>gate", "gate>manager"),
  jobCancelResponse: kind(19, jobs.jobCancelResponse, "critical", "gate>client", "manager>gate"),
  workflowDispatch: kind(20, jobs.workflowDispatch, "high", "manager>worker"),
  workflowDispatchAck: kind(21, jobs.workflowDispatchAck, "high", "worker>manager"),
  workflowProgress: kind(22, jobs.workflowProgress, "normal", "worker>manager"),
  jobProgress: kind(23, jobs.jobProgress, "normal", "manager>gate"),
  globalJobStatus: kind(24, jobs.globalJobStatus, "normal", "gate>client", "gate>gate"),
  provisionRequest: kind(25, jobs.provisionRequest, "high", "manager>manager"),
  provisionConfirm: kind(26, jobs.provisionConfirm, "high", "manager>manager"),
  provisionCommit: kind(27, jobs.provisionCommit, "high", "manager>manager"),
  provisionAbort: kind(28, jobs.provisionAbort, "high", "manager>manager"),
  stateSyncRequest: kind(
    29,
    jobs.stateSyncRequest,
    "high",
    "manager>worker",
    "manager>manager",
    "gate>gate",
  ),
  stateSyncResponse: kind(
    30,
    jobs.stateSyncResponse,
    "high",
    "worker>manager",
    "manager>manager",
    "gate>gate",
  ),
  datacenterLease: kind(31, jobs.datacenterLease, "critical", "gate>gate"),
  leaseTransfer: kind(32, jobs.leaseTransfer, "critical", "gate>gate"),
  leaseTransferAck: kind(33, jobs.leaseTransferAck, "critical", "gate>gate"),
  jobStatusPush: kind(34, jobs.jobStatusPush, "critical", "gate>client", "manager>client"),
  jobBatchPush: kind(35, jobs.jobBatchPush, "low", "gate>client", "manager>client"),

  workerRegistration: kind(48, nodes.workerRegistration, "high", "worker>manager"),
  managerRegistration: kind(49, nodes.managerRegistration, "high", "manager>gate"),
  registrationAck: kind(50, nodes.registrationAck, "high", "manager>worker", "gate>manager"),
  workflowCancelRequest: kind(
    51,
    nodes.workflowCancelRequest,
    "critical",
    "gate>manager",
    "manager>worker",
  ),
  workflowCancelResponse: kind(
    52,
    nodes.workflowCancelResponse,
    "critical",
    "manager>gate",
    "worker>manager",
  ),
  workflowCancellationQuery: kind(
    53,
    nodes.workflowCancellationQuery,
    "critical",
    "worker>manager",
  ),
  workflowCancellationAnswer: kind(
    54,
    nodes.workflowCancellationAnswer,
    "critical",
    "manager>worker",
  ),
  healthcheckExtensionRequest: kind(
    55,
    nodes.healthcheckExtensionRequest,
    "critical",
    "worker>manager",
  ),
  healthcheckExtensionResponse: kind(
    56,
    nodes.healthcheckExtensionResponse,
    "critical",
    "manager>worker",
  ),
  jobLeadership: kind(
    57,
    nodes.jobLeadership,
    "critical",
    "gate>gate",
    "gate>manager",
    "manager>gate",
    "manager>worker",
  ),
  drainComplete: kind(58, nodes.drainComplete, "high", "worker>manager"),
  jobStatusRequest: kind(59, nodes.jobStatusRequest, "normal", "client>gate", "client>manager"),

  ledgerOpening: kind(64, ledger.opening, "critical", "gate>gate", "manager>manager"),
  ledgerOpened: kind(65, ledger.opened, "critical", "gate>gate", "manager>manager"),
  ledgerBatch: kind(66, ledger.batch, "critical", "gate>gate", "manager>manager"),
} as const;

export type MessageName = keyof typeof MESSAGES;
export type MessageValue<Name extends MessageName> = ValueOf<(typeof MESSAGES)[Name]["type"]>;

export type StreamEnvelope = {
  [Name in MessageName]: {
    readonly name: Name;
    /** Pairs a reply with its request; 0 where neither is meant. (FRAME-8) */
    readonly correlation: number;
    readonly value: MessageValue<Name>;
  };
}[MessageName];

const byNumber = new Map<number, MessageName>();
for (const name of Object.keys(MESSAGES) as MessageName[])
  byNumber.set(MESSAGES[name].number, name);

export function encodeStreamMessage(envelope: StreamEnvelope): Uint8Array {
  const out = new ByteWriter(512);
  const { number, type } = MESSAGES[envelope.name];
  out.varint(number);
  out.varint(envelope.correlation);
  (type as Type<unknown>).write(out, envelope.value);
  return out.take();
}

export function decodeStreamMessage(bytes: Uint8Array): Decoded<StreamEnvelope> {
  const from = new ByteReader(bytes);
  const number = from.varint();
  const correlation = from.varint();
  const name = byNumber.get(number);
  if (name === undefined) {
    return { ok: false, problem: from.problem ?? `message ${number} is not known here` };
  }
  const value = MESSAGES[name].type.read(from);
  if (from.remaining > 0) from.fail("bytes after the end of a message");
  if (from.problem !== null) return { ok: false, problem: from.problem };
  return { ok: true, value: { name, correlation, value } as StreamEnvelope };
}

/** Null when this role may send this message to that one. */
export function directionProblem(name: MessageName, from: PeerRole, to: PeerRole): string | null {
  const { directions } = MESSAGES[name];
  const members = from !== "client" && to !== "client";
  if (directions.includes(`${from}>${to}`) || (members && directions.includes("any>any")))
    return null;
  return `a ${from} does not send ${name} to a ${to}`;
}
