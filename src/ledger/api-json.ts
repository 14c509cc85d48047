/** Requests and answers as JSON: what comes over HTTP becomes a request of the ledger or a clear refusal. */

import { z } from "zod";
import type { NodeId } from "../core/base/ids.ts";
import type { JobEvent } from "../core/ledger/job/events.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import { JOB_STATUSES, type JobState, type JobStatus } from "../core/ledger/job/job-state.ts";
import { type TrailEntry, trailEntries } from "../core/ledger/job/trail.ts";
import { JOBS_LISTED_MAX, type JobQuery } from "../core/ledger/node/job-index.ts";
import type { LedgerAnswer, LedgerRequest, ReadLevel } from "../core/ledger/node/messages.ts";
import { base64, check, type Read } from "./json-check.ts";

const submission = z.strictObject({
  key: z.string().default(""),
  spec: z.string().optional(),
  specBase64: base64.optional(),
  datacenters: z.array(z.string()).default(["dc1"]),
});

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

export interface JsonAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Refusals with a more specific status than a bad request. */
const REFUSAL_STATUS: Readonly<Record<string, number>> = { ARCHIVED: 410, EVENT_REPEATED: 409 };

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
    case "passedOn": {
      const { kind: answered, ...rest } = answer;
      return { status: 202, body: { answer: answered, ...rest } };
    }
    case "submitted":
      return submittedJson(answer.answer);
    case "job": {
      const { state, archived, servedBy, primary, view, members } = answer;
      const job = jobJson(state);
      const led = archived ? { archived } : { primary, view, members };
      return { status: 200, body: { answer: "job", job, servedBy, ...led } };
    }
    case "notFound":
      return { status: 404, body: { answer: "notFound", error: `no job ${answer.jobId}` } };
    case "retry":
      return { status: 503, body: { answer: "retry", ...retryable(answer.why) } };
    case "refused": {
      const { code, message } = answer;
      return {
        status: REFUSAL_STATUS[code] ?? 400,
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

function jobJson(state: JobState): Record<string, unknown> {
  const { spec, trail, chain, end, run, ...rest } = state;
  const ended =
    end?.kind === "completed"
      ? { ...end, aggregateMetrics: Buffer.from(end.aggregateMetrics).toString("base64") }
      : end;
  return {
    ...rest,
    spec: Buffer.from(spec).toString("base64"),
    chain: Buffer.from(chain).toString("hex"),
    end: ended,
    run: bytesAsText(run),
    events: [...trailEntries(trail)].map(trailJson),
  };
}

export function trailJson({ hlc, ...entry }: TrailEntry): Record<string, unknown> {
  return { ...entry, at: new Date(hlc.wallMs).toISOString(), hlc };
}

export function eventJson(event: JobEvent): Record<string, unknown> {
  return bytesAsText(event) as Record<string, unknown>;
}

/** Digests in hex, other bytes in base64, all else as it is. */
function bytesAsText(value: unknown, name = ""): unknown {
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString(/digest$/i.test(name) ? "hex" : "base64");
  }
  if (Array.isArray(value)) return value.map((one) => bytesAsText(one, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, bytesAsText(one, key)]),
  );
}
