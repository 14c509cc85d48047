/** Events that simulated clients append to jobs. */

import type { Random } from "../../src/core/base/random.ts";
import type { EventId, JobEvent } from "../../src/core/ledger/job/events.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";

type EventHead = Pick<JobEvent, "jobId" | "eventId" | "fenceToken" | "hlc">;

export const NO_HLC = { wallMs: 0, logical: 0, node: "client" } as JobEvent["hlc"];
export const DCS = ["dc1", "dc2"];

export function drawEvent(random: Random, jobId: JobId, eventId: string): JobEvent {
  const head = { jobId, eventId: eventId as EventId, fenceToken: 0, hlc: NO_HLC };
  const dcId = random.pick(DCS);
  if (random.chance(0.3)) return drawRunEvent(random, head, dcId);
  const draw = random.float();
  if (draw < 0.7) return { ...head, kind: "JobAccepted", dcId, workerCount: random.below(100) };
  if (draw < 0.8) {
    return { ...head, kind: "JobCancellationAcked", dcId, workflowsCancelled: random.below(9) };
  }
  if (draw < 0.9) {
    return { ...head, kind: "JobCancellationRequested", reason: "sim", requestor: "sim" };
  }
  if (draw < 0.94) {
    return {
      ...head,
      kind: "JobCompleted",
      finalStatus: "ok",
      aggregateMetrics: new Uint8Array(3),
    };
  }
  if (draw < 0.97) return { ...head, kind: "JobFailed", error: "sim", failedDc: dcId };
  return { ...head, kind: "JobTimedOut", timeoutType: "sim", lastProgressHlc: null };
}

const DIGEST = new Uint8Array(32).fill(1);

function drawRunEvent(random: Random, head: EventHead, dcId: string): JobEvent {
  const requestor = "sim";
  const shares = [{ dcId, cores: 1 }];
  const workflow = random.pick(["buy", "browse"]);
  const counts = { bytes: 3, completed: random.below(100), failed: 0 };
  return random.pick<JobEvent>([
    { ...head, kind: "JobQueued", reason: "sim" },
    { ...head, kind: "JobDispatched", dcId, cores: 1, attempt: 1, digest: DIGEST },
    { ...head, kind: "JobSetUpValue", workflow, value: DIGEST },
    { ...head, kind: "JobStarted", startAtMs: 1, planDigest: DIGEST, shares },
    { ...head, kind: "JobStarted", startAtMs: 2, planDigest: DIGEST, shares },
    { ...head, kind: "JobPaused", requestor },
    { ...head, kind: "JobResumed", requestor },
    { ...head, kind: "JobScaled", permille: random.below(2_000), requestor },
    { ...head, kind: "JobDcResult", dcId, finalStatus: "ok", digest: DIGEST, ...counts },
    { ...head, kind: "JobAborted", reason: "sim", requestor },
  ]);
}
