import type { NodeId } from "../../../base/ids.ts";
import type { EventId, JobEvent } from "../../job/events.ts";
import { applyEvent } from "../../job/fold.ts";
import type { JobId } from "../../job/job-id.ts";
import { initialState, type JobState } from "../../job/job-state.ts";

/** A job that was created, accepted and completed at this time. */
export function endedJob(name: string, at: number): JobState {
  const jobId = `use1-${at}-${name}-00001` as JobId;
  const head = (place: number) => ({
    jobId,
    eventId: `${name}${place}` as EventId,
    fenceToken: 1,
    hlc: { wallMs: at + place, logical: 0, node: "n1" as NodeId },
  });
  const events: JobEvent[] = [
    { kind: "JobCreated", ...head(0), spec: new Uint8Array([1]), assignedDcs: ["dc1"] },
    { kind: "JobAccepted", ...head(1), dcId: "dc1", workerCount: 2 },
    {
      kind: "JobCompleted",
      ...head(2),
      finalStatus: "passed",
      aggregateMetrics: new Uint8Array(3),
    },
  ];
  return events.reduce(
    (state, event, seq) => applyEvent(state, event, seq).state,
    initialState(jobId),
  );
}
