/** Requests and answers as JSON: what comes over HTTP becomes a request of the ledger or a clear refusal. */

import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { NodeId } from "../core/base/ids.ts";
import { DURABILITY_LEVELS, type Durability } from "../core/ledger/job/durability.ts";
import type { EventId, JobEvent } from "../core/ledger/job/events.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import { JOB_STATUSES, type JobState, type JobStatus } from "../core/ledger/job/job-state.ts";
import { type TrailEntry, trailEntries } from "../core/ledger/job/trail.ts";
import { JOBS_LISTED_MAX, type JobQuery } from "../core/ledger/node/job-index.ts";
import type { LedgerAnswer, LedgerRequest, ReadLevel } from "../core/ledger/node/messages.ts";

export type Read<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

const count = z.number().int().min(0);
const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, "must be base64");

const submission = z.strictObject({
  key: z.string().default(""),
  spec: z.string().optional(),
  specBase64: base64.optional(),
  datacenters: z.array(z.string()).default(["dc1"]),
});

const durability = z.enum(Object.keys(DURABILITY_LEVELS) as [Durability, ...Durability[]]);
const head = {
  eventId: z.string().optional(),
  durability: durability.default("NONE"),
  ifSeq: count.nullable().default(null),
  ifFence: count.nullable().default(null),
};
const dc = z.string().default("dc1");

/** The words of the command line and of the interface for the events of a job. */
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
    requestor: z.string().default(""),
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
]);

type EventBody = z.infer<typeof event>;
export const EVENT_WORDS: readonly EventBody["event"][] = [
  "accepted",
  "progress",
  "cancel",
  "cancelled",
  "complete",
  "fail",
  "timeout",
];

const READ_WORDS: Readonly<Record<string, ReadLevel>> = {
  eventual: "EVENTUAL",
  session: "SESSION",
  bounded: "BOUNDED_STALENESS",
  strong: "STRONG",
};

export function readSubmission(body: unknown): Read<LedgerRequest> {
  const parsed = check(submission, body);
  if (!parsed.ok) return parsed;
  const { key, spec, specBase64, datacenters } = parsed.value;
  const bytes =
    specBase64 === undefined ? Buffer.from(spec ?? "", "utf8") : Buffer.from(specBase64, "base64");
  const request = { kind: "submit", key, spec: new Uint8Array(bytes), assignedDcs: datacenters };
  return { ok: true, value: request as LedgerRequest };
}

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

function eventOf(
  body: EventBody,
  eventHead: Pick<JobEvent, "jobId" | "eventId" | "fenceToken" | "hlc" | "condition">,
): JobEvent {
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
  }
}

const replacement = z.strictObject({ leaving: z.string().min(1), joining: z.string().min(1) });

export interface Replacement {
  readonly leaving: NodeId;
  readonly joining: NodeId;
}

export function readReplacement(body: unknown): Read<Replacement> {
  const parsed = check(replacement, body);
  if (!parsed.ok) return parsed;
  const { leaving, joining } = parsed.value;
  return { ok: true, value: { leaving: leaving as NodeId, joining: joining as NodeId } };
}

export function readRead(jobId: string, query: URLSearchParams): Read<LedgerRequest> {
  const word = query.get("level") ?? "session";
  const level = READ_WORDS[word];
  const minSeq = wholeNumber(query, "minSeq", -1);
  const staleMs = wholeNumber(query, "staleMs", 1_000);
  if (level === undefined) {
    const words = Object.keys(READ_WORDS).join(", ");
    return { ok: false, problem: `level "${word}": one of ${words}` };
  }
  if (minSeq === null) return { ok: false, problem: "minSeq must be a whole number" };
  if (staleMs === null) return { ok: false, problem: "staleMs must be a whole number" };
  const request = { kind: "read", jobId: jobId as JobId, level, minSeq, staleMs } as const;
  return { ok: true, value: request };
}

/** Statuses are separated by commas, in any case: `running,paused`. */
export function readJobQuery(query: URLSearchParams): Read<JobQuery> {
  const limit = wholeNumber(query, "limit", 100);
  if (limit === null || limit < 1 || limit > JOBS_LISTED_MAX) {
    return { ok: false, problem: `limit must be a whole number from 1 to ${JOBS_LISTED_MAX}` };
  }
  const words = (query.get("status") ?? "").split(",").filter((word) => word !== "");
  const statuses: JobStatus[] = [];
  for (const word of words) {
    const status = JOB_STATUSES.find((one) => one === word.toUpperCase());
    if (status === undefined) {
      const known = JOB_STATUSES.join(", ").toLowerCase();
      return { ok: false, problem: `status "${word}": one of ${known}` };
    }
    statuses.push(status);
  }
  const text = (name: string): string => query.get(name) ?? "";
  const rest = { owner: query.get("owner"), prefix: text("prefix"), after: text("after"), limit };
  return { ok: true, value: { statuses, ...rest } };
}

/** Null when it is there and no whole number. */
export function wholeNumber(query: URLSearchParams, name: string, fallback: number): number | null {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= -1 ? value : null;
}

function check<Schema extends z.ZodType>(schema: Schema, body: unknown): Read<z.output<Schema>> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const at = issue === undefined || issue.path.length === 0 ? "the body" : issue.path.join(".");
  return { ok: false, problem: `${at}: ${issue?.message ?? "is wrong"}` };
}

export interface JsonAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Whether the same request may be sent again is in the body, not only in the number. */
export function answerJson(answer: LedgerAnswer): JsonAnswer {
  switch (answer.kind) {
    case "committed": {
      const { kind: answered, ...rest } = answer;
      return { status: 200, body: { answer: answered, ...rest } };
    }
    case "conflict": {
      const { kind: answered, ...rest } = answer;
      const error = conflictText(answer);
      return { status: 409, body: { answer: answered, ...rest, error } };
    }
    case "unknown":
      return { status: 504, body: { ...retryable(answer.why), ...answer, answer: "unknown" } };
    case "submitted":
      return submittedJson(answer.answer);
    case "job": {
      const { state, servedBy, primary, view, members } = answer;
      const body = { answer: "job", job: jobJson(state), servedBy, primary, view, members };
      return { status: 200, body };
    }
    case "notFound":
      return { status: 404, body: { answer: "notFound", error: `no job ${answer.jobId}` } };
    case "retry":
      return { status: 503, body: { answer: "retry", ...retryable(answer.why) } };
    case "refused": {
      const { code, message } = answer;
      return {
        status: code === "ARCHIVED" ? 410 : 400,
        body: { answer: "refused", code, error: message },
      };
    }
    case "state": {
      const { group, seq, view, bytes } = answer;
      const state = Buffer.from(bytes).toString("base64");
      return { status: 200, body: { answer: "state", group, seq, view, state } };
    }
    case "founded":
    case "redirect":
      return { status: 503, body: { answer: "retry", ...retryable("the group has moved") } };
  }
}

function conflictText({ reason, seq, fence }: Extract<LedgerAnswer, { kind: "conflict" }>): string {
  const why = reason === "SEQ_MOVED" ? "the job has changed since" : "the job has another owner";
  return `${reason}: ${why}; it is at place ${seq} with fence ${fence}, and nothing was changed`;
}

function retryable(why: string): { readonly error: string; readonly retry: true } {
  return { error: why, retry: true };
}

function submittedJson(answer: Extract<LedgerAnswer, { kind: "submitted" }>["answer"]): JsonAnswer {
  switch (answer.kind) {
    case "accepted": {
      const { jobId, duplicate } = answer;
      return { status: 200, body: { answer: "accepted", jobId, duplicate } };
    }
    case "rejected": {
      const error = Buffer.from(answer.result).toString("utf8");
      return { status: 422, body: { answer: "rejected", error, duplicate: answer.duplicate } };
    }
    case "keyReused": {
      const error = "this key was used for another submission; a new submission needs a new key";
      return { status: 409, body: { answer: "keyReused", error } };
    }
    case "retry":
      return { status: 503, body: { answer: "retry", ...retryable(answer.why) } };
  }
}

export function jobJson(state: JobState): Record<string, unknown> {
  const { spec, trail, chain, end, ...rest } = state;
  const ended =
    end?.kind === "completed"
      ? { ...end, aggregateMetrics: Buffer.from(end.aggregateMetrics).toString("base64") }
      : end;
  return {
    ...rest,
    spec: Buffer.from(spec).toString("base64"),
    chain: Buffer.from(chain).toString("hex"),
    end: ended,
    events: [...trailEntries(trail)].map(trailJson),
  };
}

export function trailJson({ hlc, ...entry }: TrailEntry): Record<string, unknown> {
  return { ...entry, at: new Date(hlc.wallMs).toISOString(), hlc };
}

/** Bytes as base64, all else as it is. */
export function eventJson(event: JobEvent): Record<string, unknown> {
  const fields = Object.entries(event).map(([name, value]) => [
    name,
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  ]);
  return Object.fromEntries(fields);
}
