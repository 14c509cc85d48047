/**
 * Effects of run events on a live job: which datacenters were asked, what has started and how far it has come. Before
 * its start a job may be queued again and other datacenters may be chosen; after it never, so that it runs at most once
 * in each. Once a cancel is committed nothing starts or resumes; results are still accepted. (LEDG-7)
 */

import { assertNever } from "../../base/assert.ts";
import type {
  JobAborted,
  JobDcResult,
  JobDispatched,
  JobScaled,
  JobSetUpValue,
  JobStarted,
  RunEvent,
} from "./events.ts";
import type { JobState, RunState } from "./job-state.ts";
import { JOB_DCS_MAX, SET_UP_BYTES_MAX, SET_UPS_MAX } from "./limits.ts";
import { applied, isNewer, NOOP, rejected, type Verdict } from "./verdict.ts";

export function judgeRun(state: JobState, event: RunEvent): Verdict {
  const { status, run } = state;
  if (event.kind === "JobAborted") return abort(state, event);
  if (event.kind === "JobDcResult") return noteResult(state, event);
  if (status === "CANCELLING") return rejected("BEING_CANCELLED");
  const isRunning = status === "RUNNING" || status === "PAUSED";
  switch (event.kind) {
    case "JobQueued":
      if (run.started !== null) return rejected("ALREADY_STARTED");
      return status === "QUEUED" ? NOOP : queue(run);
    case "JobDispatched":
      return run.started === null ? dispatch(state, event) : rejected("ALREADY_STARTED");
    case "JobSetUpValue":
      return keepSetUp(state, event);
    case "JobStarted":
      return run.started === null ? start(state, event) : rejected("ALREADY_STARTED");
    case "JobPaused":
      if (!isRunning) return rejected("NOT_RUNNING");
      return status === "PAUSED" ? NOOP : applied({ status: "PAUSED" });
    case "JobResumed":
      if (!isRunning) return rejected("NOT_RUNNING");
      return status === "RUNNING" ? NOOP : applied({ status: "RUNNING" });
    case "JobScaled":
      return isRunning ? scale(run, event) : rejected("NOT_RUNNING");
    default:
      return assertNever(event);
  }
}

/** Releases the reservations: datacenters that accepted are asked again. */
function queue(run: RunState): Verdict {
  return applied({ status: "QUEUED", accepted: [], run: { ...run, dispatched: [] } });
}

/** A datacenter that was not assigned joins the assigned ones, so that a cancellation waits for it too. */
function dispatch(state: JobState, event: JobDispatched): Verdict {
  const { dcId, cores, attempt, digest, fenceToken, hlc } = event;
  const { dispatched } = state.run;
  const known = dispatched.find((one) => one.dcId === dcId);
  if (known !== undefined && !isNewer(event, known)) return NOOP;
  const isAssigned = state.assignedDcs.includes(dcId);
  if (!isAssigned && state.assignedDcs.length >= JOB_DCS_MAX) return rejected("TOO_MANY_DCS");
  const others = dispatched.filter((one) => one !== known);
  const next = [...others, { dcId, cores, attempt, digest, fenceToken, hlc }];
  return applied({
    status: state.status === "ACCEPTED" ? "ACCEPTED" : "DISPATCHED",
    assignedDcs: isAssigned ? state.assignedDcs : [...state.assignedDcs, dcId],
    run: { ...state.run, dispatched: next },
  });
}

/** Accepts one value per workflow: a run that started with the first value cannot switch to another. */
function keepSetUp({ status, run }: JobState, { workflow, value }: JobSetUpValue): Verdict {
  if (status === "CREATED" || status === "QUEUED") return rejected("NOT_DISPATCHED");
  const { setUps } = run;
  if (setUps.some((one) => one.workflow === workflow)) return rejected("SET_UP_TWICE");
  const bytes = setUps.reduce((sum, one) => sum + one.value.length, value.length);
  if (bytes > SET_UP_BYTES_MAX || setUps.length >= SET_UPS_MAX) return rejected("TOO_MUCH_SET_UP");
  return applied({ run: { ...run, setUps: [...setUps, { workflow, value }] } });
}

/** Only where every datacenter that gets a share has accepted. */
function start({ accepted, run }: JobState, event: JobStarted): Verdict {
  const { startAtMs, planDigest, shares } = event;
  const ready = shares.every(({ dcId }) => accepted.some((one) => one.dcId === dcId));
  if (!ready) return rejected("NOT_ACCEPTED");
  const started = { startAtMs, planDigest, shares };
  return applied({ status: "RUNNING", run: { ...run, started } });
}

function scale(run: RunState, { permille }: JobScaled): Verdict {
  return permille === run.permille ? NOOP : applied({ run: { ...run, permille } });
}

function abort({ status, run }: JobState, { eventId, reason, requestor }: JobAborted): Verdict {
  if (run.aborted) return NOOP;
  const aborted = { ...run, aborted: true };
  if (status === "CANCELLING") return applied({ run: aborted });
  return applied({
    status: "CANCELLING",
    run: aborted,
    cancellation: { eventId, reason, requestor, ackedDcs: [], workflowsCancelled: 0 },
  });
}

function noteResult({ run }: JobState, event: JobDcResult): Verdict {
  const { dcId, finalStatus, digest, bytes, completed, failed, fenceToken, hlc } = event;
  if (run.started === null) return rejected("NOT_STARTED");
  if (!run.started.shares.some((share) => share.dcId === dcId)) return rejected("NOT_DISPATCHED");
  const known = run.results.find((one) => one.dcId === dcId);
  if (known !== undefined && !isNewer(event, known)) return NOOP;
  const others = run.results.filter((one) => one !== known);
  const result = { dcId, finalStatus, digest, bytes, completed, failed, fenceToken, hlc };
  return applied({ run: { ...run, results: [...others, result] } });
}
