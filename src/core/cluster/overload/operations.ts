/** Requests to a gate or a manager: their priority under overload, and the rate allowed per caller. (AD-22, AD-24) */

import type { Priority, StreamEnvelope } from "../../../wire/registry.ts";
import { assertNever } from "../../base/assert.ts";
import type { ClientRequest } from "../messages.ts";
import { OVERLOAD_STATES, type OverloadState } from "../views.ts";

interface OperationRule {
  readonly priority: Priority;
  /** Requests per caller; null: bounded by concurrency only. */
  readonly perTenSeconds: number | null;
}

/** Cancels and status requests pass at every level: they end work, or show that it has ended. */
export const OPERATIONS = {
  cancel: { priority: "critical", perTenSeconds: 20 },
  status: { priority: "critical", perTenSeconds: 100 },
  submit: { priority: "high", perTenSeconds: 50 },
  steer: { priority: "high", perTenSeconds: 20 },
  /** Files of a submission. */
  upload: { priority: "high", perTenSeconds: null },
  watch: { priority: "normal", perTenSeconds: 300 },
  list: { priority: "low", perTenSeconds: 100 },
} as const satisfies Record<string, OperationRule>;

export type Operation = keyof typeof OPERATIONS;
export const OPERATION_NAMES = Object.keys(OPERATIONS) as readonly Operation[];

export function priorityOf(operation: Operation): Priority {
  return OPERATIONS[operation].priority;
}

/** True for requests that a critically slow node rejects; running work continues. (BP-6) */
export function isNewWork(operation: Operation): boolean {
  return operation === "submit" || operation === "upload";
}

/** Null for messages that clients do not send: traffic between members has bounds of its own. */
export function operationOf(message: StreamEnvelope): Operation | null {
  if (message.name === "blobPut") return "upload";
  return message.name === "clientRequest" ? ofClient(message.value) : null;
}

function ofClient(request: ClientRequest): Operation {
  switch (request.kind) {
    case "submit":
    case "status":
    case "watch":
      return request.kind;
    case "control":
      return request.control.kind === "cancel" ? "cancel" : "steer";
    case "drain":
    case "removeNode":
      return "steer";
    case "jobs":
    case "events":
    case "nodes":
    case "datacenters":
      return "list";
    default:
      return assertNever(request);
  }
}

const SHED: Readonly<Record<Priority, OverloadState | null>> = {
  low: "busy",
  normal: "stressed",
  high: "overloaded",
  critical: null,
};

/** Whether a request of this priority is rejected in this state. (AD-22.2, AD-22.3) */
export function isShed(priority: Priority, state: OverloadState): boolean {
  const from = SHED[priority];
  return from !== null && OVERLOAD_STATES.indexOf(state) >= OVERLOAD_STATES.indexOf(from);
}
