/** The events of a job as JSON, as used by the command line and the interface. */

import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { NodeId } from "../core/base/ids.ts";
import { DURABILITY_LEVELS, type Durability } from "../core/ledger/job/durability.ts";
import type { EventId, JobEvent } from "../core/ledger/job/events.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import type { LedgerRequest } from "../core/ledger/node/messages.ts";
import { base64, check, type Read } from "./json-check.ts";

const count = z.number().int().min(0);
const durability = z.enum(Object.keys(DURABILITY_LEVELS) as [Durability, ...Durability[]]);
const head = {
  eventId: z.string().optional(),
  durability: durability.default("NONE"),
  ifSeq: count.nullable().default(null),
  ifFence: count.nullable().default(null),
};
const dc = z.string().default("dc1");
const requestor = z.string().default("");
const digest = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in 64 hex digits");

/** Event names of the command line and of the interface. */
const event = z.discriminatedUnion("event", [
  z.strictObject({ event: z.literal("accepted"), ...head, dc, workers: count.default(1) }),
  z.strictObject({
    event: z.literal("progress"),
    ...head,
    dc,
    completed: count.default(0),
    failed: count.default(0),
  }),
  z.strictObject({
    event: z.literal("cancel"),
    ...head,
    reason: z.string().default(""),
    requestor,
  }),
  z.strictObject({ event: z.literal("cancelled"), ...head, dc, workflows: count.default(0) }),
  z.strictObject({
    event: z.literal("complete"),
    ...head,
    status: z.string().default("passed"),
    metricsBase64: base64.default(""),
  }),
  z.strictObject({ event: z.literal("fail"), ...head, dc, error: z.string().default("") }),
  z.strictObject({ event: z.literal("timeout"), ...head, timeoutType: z.string().default("job") }),
  z.strictObject({ event: z.literal("queued"), ...head, reason: z.string().default("") }),
  z.strictObject({
    event: z.literal("dispatched"),
    ...{ ...head, dc, cores: count.default(1), attempt: count.default(1), digest },
  }),
  z.strictObject({
    event: z.literal("setup"),
    ...{
      ...head,
      workflow: z.string(),
      value: z.string().optional(),
      valueBase64: base64.optional(),
    },
  }),
  z.strictObject({
    event: z.literal("started"),
    ...{ ...head, startAtMs: count, digest },
    shares: z.record(z.string(), count),
  }),
  z.strictObject({ event: z.literal("paused"), ...head, requestor }),
  z.strictObject({ event: z.literal("resumed"), ...head, requestor }),
  z.strictObject({ event: z.literal("scaled"), ...head, permille: count, requestor }),
  z.strictObject({ event: z.literal("abort"), ...head, reason: z.string().default(""), requestor }),
  z.strictObject({
    event: z.literal("result"),
    ...{ ...head, dc, status: z.string().default("passed"), digest, bytes: count.default(0) },
    ...{ completed: count.default(0), failed: count.default(0) },
  }),
]);

type EventBody = z.infer<typeof event>;
export const EVENT_WORDS: readonly EventBody["event"][] = event.options.map(
  ({ shape }) => shape.event.value,
);

export function readEvent(
  body: unknown,
  jobId: string,
  source: { readonly node: NodeId; readonly wallMs: number },
): Read<LedgerRequest> {
  const parsed = check(event, body);
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  const { ifSeq, ifFence } = value;
  const eventHead = {
    jobId: jobId as JobId,
    eventId: (value.eventId ?? randomUUID()) as EventId,
    fenceToken: 0,
    hlc: { wallMs: Math.floor(source.wallMs), logical: 0, node: source.node },
    ...(ifSeq === null && ifFence === null ? {} : { condition: { ifSeq, ifFence } }),
  };
  const jobEvent = eventOf(value, eventHead);
  return {
    ok: true,
    value: { kind: "append", event: jobEvent, durability: value.durability },
  };
}

type Head = Pick<JobEvent, "jobId" | "eventId" | "fenceToken" | "hlc" | "condition">;

function eventOf(body: EventBody, eventHead: Head): JobEvent {
  switch (body.event) {
    case "accepted":
      return { kind: "JobAccepted", ...eventHead, dcId: body.dc, workerCount: body.workers };
    case "progress": {
      const { completed, failed } = body;
      return { kind: "JobProgressReported", ...eventHead, dcId: body.dc, completed, failed };
    }
    case "cancel": {
      const { reason, requestor } = body;
      return { kind: "JobCancellationRequested", ...eventHead, reason, requestor };
    }
    case "cancelled": {
      const kind = "JobCancellationAcked";
      return { kind, ...eventHead, dcId: body.dc, workflowsCancelled: body.workflows };
    }
    case "complete": {
      const aggregateMetrics = new Uint8Array(Buffer.from(body.metricsBase64, "base64"));
      return { kind: "JobCompleted", ...eventHead, finalStatus: body.status, aggregateMetrics };
    }
    case "fail":
      return { kind: "JobFailed", ...eventHead, error: body.error, failedDc: body.dc };
    case "timeout": {
      const { timeoutType } = body;
      return { kind: "JobTimedOut", ...eventHead, timeoutType, lastProgressHlc: null };
    }
    default:
      return runEventOf(body, eventHead);
  }
}

type RunBody = Extract<
  EventBody,
  {
    event:
      | ("queued" | "dispatched" | "setup" | "started" | "paused")
      | ("resumed" | "scaled" | "abort" | "result");
  }
>;

function runEventOf(body: RunBody, eventHead: Head): JobEvent {
  switch (body.event) {
    case "queued":
      return { kind: "JobQueued", ...eventHead, reason: body.reason };
    case "dispatched": {
      const { dc: dcId, cores, attempt } = body;
      return {
        kind: "JobDispatched",
        ...eventHead,
        dcId,
        cores,
        attempt,
        digest: hex(body.digest),
      };
    }
    case "setup": {
      const { workflow, value = "", valueBase64 } = body;
      const bytes =
        valueBase64 === undefined ? Buffer.from(value, "utf8") : Buffer.from(valueBase64, "base64");
      return { kind: "JobSetUpValue", ...eventHead, workflow, value: new Uint8Array(bytes) };
    }
    case "started": {
      const shares = Object.entries(body.shares).map(([dcId, cores]) => ({ dcId, cores }));
      const { startAtMs } = body;
      return { kind: "JobStarted", ...eventHead, startAtMs, planDigest: hex(body.digest), shares };
    }
    case "paused":
      return { kind: "JobPaused", ...eventHead, requestor: body.requestor };
    case "resumed":
      return { kind: "JobResumed", ...eventHead, requestor: body.requestor };
    case "scaled": {
      const { permille, requestor: by } = body;
      return { kind: "JobScaled", ...eventHead, permille, requestor: by };
    }
    case "abort": {
      const { reason, requestor: by } = body;
      return { kind: "JobAborted", ...eventHead, reason, requestor: by };
    }
    case "result": {
      const { dc: dcId, status: finalStatus, bytes, completed, failed } = body;
      const figures = { digest: hex(body.digest), bytes, completed, failed };
      return { kind: "JobDcResult", ...eventHead, dcId, finalStatus, ...figures };
    }
  }
}

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}
