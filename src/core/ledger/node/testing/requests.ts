/** Short builders of requests and answers for tests. */

import { encodeUtf8 } from "../../../base/bytes.ts";
import { nodeId } from "../../../base/ids.ts";
import type { GroupId } from "../../group/messages.ts";
import type { Condition } from "../../job/condition.ts";
import type { EventId, JobEvent } from "../../job/events.ts";
import type { JobId } from "../../job/job-id.ts";
import type { LedgerAnswer, LedgerRequest, ReadLevel } from "../messages.ts";
import { type TestCluster, WALL } from "./cluster.ts";

export const THREE = ["use1", "euw1", "apse1"];

export function submit(key = "", spec = "work"): LedgerRequest {
  return { kind: "submit", key, spec: encodeUtf8(spec), assignedDcs: ["dc1"] };
}

type Body = { readonly kind: JobEvent["kind"] } & Record<string, unknown>;

export function event(
  jobId: string,
  eventId: string,
  body: Body,
  condition: Partial<Condition> | null = null,
): LedgerRequest {
  const hlc = { wallMs: WALL, logical: 0, node: nodeId("client") };
  const head = { jobId: jobId as JobId, eventId: eventId as EventId, fenceToken: 0, hlc };
  const needs =
    condition === null ? {} : { condition: { ifSeq: null, ifFence: null, ...condition } };
  return { kind: "append", event: { ...head, ...needs, ...body } as JobEvent, durability: "NONE" };
}

export const accepted = { kind: "JobAccepted", dcId: "dc1", workerCount: 2 } as const;
export const cancel = { kind: "JobCancellationRequested", reason: "", requestor: "me" } as const;
export const completed = {
  kind: "JobCompleted",
  finalStatus: "passed",
  aggregateMetrics: new Uint8Array(0),
} as const;

export function read(jobId: string, level: ReadLevel = "STRONG", minSeq = -1): LedgerRequest {
  return { kind: "read", jobId: jobId as JobId, level, minSeq, staleMs: 1_000 };
}

export function jobOf(answer: LedgerAnswer): string {
  if (answer.kind === "committed") return answer.jobId;
  if (answer.kind === "submitted" && answer.answer.kind === "accepted") return answer.answer.jobId;
  throw new Error(`no job in ${answer.kind}`);
}

export function statusOf(answer: LedgerAnswer): string {
  return answer.kind === "job" ? answer.state.status : answer.kind;
}

export function primaryIndex(cluster: TestCluster, jobId: string): number {
  return cluster.nodes.findIndex(
    ({ node }) => node?.groups.get(jobId as GroupId)?.replica.state.acting === true,
  );
}
