/**
 * History of a job derived from its log: when, what, by whom and under which token. Times of the run are mapped to the
 * wall clock of the manager that accepted the submission.
 */

import { clipText } from "../../base/text.ts";
import type { RunSummary } from "../../load/results/model.ts";
import { endedWorkflows } from "../ended-workflows.ts";
import type { AttemptView, JobEventView, JobStatus, WorkflowView } from "../messages.ts";
import type { DatacenterJob } from "./datacenter-state.ts";
import type { Adoption, Decision } from "./run-entries.ts";
import type { RunAttempt } from "./run-snapshot.ts";
import type { RunState } from "./run-state.ts";

/** A placement over many cores names only the first of them. */
const TEXT_CHARACTERS_MAX = 1_000;

type Told = Omit<JobEventView, "datacenter">;

/** Events in order. */
export function eventsOf(job: DatacenterJob, run: RunState | null): readonly Told[] {
  const submitted: Told = {
    ...{ at: job.createdAt, kind: "submitted", who: job.takenBy, token: null, text: job.name },
  };
  const begun = run?.submission == null ? [] : [...runEvents(run)];
  const events = [submitted, ...begun];
  if (job.phase !== "ended") return events;
  const last = events.at(-1)?.at ?? job.createdAt;
  const { reason, status } = job;
  const ended: Told = {
    at: Math.max(last, job.endedAt ?? last),
    kind: "ended",
    ...leaderOf(run?.adoptions.at(-1), job.takenBy),
    text: reason === null ? status : `${status}: ${reason}`,
  };
  return [...events, ended];
}

/** False for a replica that lacks the log of the job or knows that it is behind. */
export function hasWholeLog(
  { phase, summary }: Pick<DatacenterJob, "phase" | "summary">,
  run: { readonly state: RunState; readonly primary: string | null } | null,
): boolean {
  const isThere = run !== null && run.state.submission !== null;
  if (phase === "admitted") return isThere && run.primary !== null;
  // A job without a result may never have begun.
  return phase !== "ended" || summary === null || (isThere && run.state.end !== null);
}

/** Decisions, interleaved with changes of the leader. */
function* runEvents(run: RunState): Generator<Told> {
  const began = run.createdAt + run.waitedMs;
  const cores = run.grants.reduce((sum, grant) => sum + grant.cores, 0);
  const workers = run.grants.map(({ worker }) => worker).join(", ");
  const text = `${cores} cores on ${workers}, after ${run.waitedMs} ms`;
  const [first] = run.adoptions;
  yield { at: began, kind: "admitted", ...leaderOf(first, ""), text };
  let led: Adoption | undefined;
  let next = 0;
  for (const decision of run.history) {
    for (; next < run.adoptions.length; next++) {
      const adoption = run.adoptions[next];
      if (adoption === undefined || adoption.at > decision.at) break;
      led = adoption;
      yield adopted(began, adoption);
    }
    const event = eventOf(decision, run, leaderOf(led, ""));
    if (event === null) continue;
    yield { at: began + decision.at, ...event, text: clipText(event.text, TEXT_CHARACTERS_MAX) };
  }
  for (const adoption of run.adoptions.slice(next)) yield adopted(began, adoption);
}

function adopted(began: number, adoption: Adoption): Told {
  return { at: began + adoption.at, kind: "adopted", ...leaderOf(adoption, ""), text: "" };
}

interface By {
  readonly who: string;
  readonly token: number | null;
}

function leaderOf(adoption: Adoption | undefined, otherwise: string): By {
  return adoption === undefined
    ? { who: otherwise, token: null }
    : { who: adoption.by, token: adoption.view };
}

/** Null for decisions that only machines need. */
function eventOf(decision: Decision, run: RunState, by: By): Omit<Told, "at"> | null {
  switch (decision.kind) {
    case "start": {
      // Cores that join later replace others.
      const loaded = run.cores.filter(({ joins }) => joins === undefined).length;
      return { kind: "started", ...by, text: `${loaded} cores have loaded it` };
    }
    case "coreLost":
      return { kind: "coreLost", ...by, text: decision.what };
    case "control": {
      const { control, by: who } = decision;
      const detail =
        control.kind === "scale"
          ? `${control.factor} times the plan`
          : control.kind === "cancel" || control.kind === "timeOut"
            ? control.reason
            : "";
      return { kind: control.kind, who, token: null, text: detail };
    }
    case "step":
      return stepEvent(decision.step, run, by);
    default:
      return null;
  }
}

function stepEvent(
  step: Extract<Decision, { kind: "step" }>["step"],
  run: RunState,
  by: By,
): Omit<Told, "at"> | null {
  const workerOf = (core: number): string =>
    run.cores.find((known) => known.core === core)?.worker ?? "";
  const onCore = (core: number): string => `core ${core} of ${workerOf(core)}`;
  switch (step.kind) {
    case "place":
      return {
        ...{ kind: "placed", who: by.who, token: step.execution },
        text: `${step.workflow} on ${step.cores.map(onCore).join(", ")}`,
      };
    case "deal":
      return {
        ...{ kind: "dealtAgain", who: by.who, token: step.execution },
        text: `${step.workflow}, the share of ${onCore(step.instead)}, on ${onCore(step.core)}`,
      };
    case "setup":
      return { kind: "setUp", ...by, text: `${step.workflow} on ${onCore(step.core)}` };
    case "setupDone":
      return { kind: "setUpDone", ...by, text: step.workflow };
    case "teardown":
      return { kind: "tearDown", ...by, text: `${step.workflow} on ${onCore(step.core)}` };
    case "finished":
      return {
        ...{ kind: "finished", who: workerOf(step.core), token: step.finished.execution },
        text: `${step.workflow} on ${onCore(step.core)}`,
      };
    case "report": {
      const how = step.error === null ? "completed" : `failed: ${step.error}`;
      return { kind: "workflowEnded", ...by, text: `${step.workflow} ${how}` };
    }
    case "stop":
      return { kind: "stopped", ...by, text: step.fault?.text ?? "" };
    case "level":
      return { kind: "level", ...by, text: `${step.workflow}: load ${step.load}` };
    case "finish":
      return { kind: "levelFound", ...by, text: step.workflow };
    default:
      return null;
  }
}

/** Status according to the log; the leader of the job knows more. */
export function foldedStatus({ cancelled, end, history, isStarted }: RunState): JobStatus {
  if (end !== null) return end.status;
  if (cancelled !== null) return "CANCELLING";
  if (!isStarted) return "STARTING";
  const last = history.findLast(
    (one) => one.kind === "control" && ["pause", "resume"].includes(one.control.kind),
  );
  return last?.kind === "control" && last.control.kind === "pause" ? "PAUSED" : "RUNNING";
}

type WorkflowStatus = "waiting" | "running" | "completed" | "failed";

export function workflowStatus({ attempts, history }: RunState, name: string): WorkflowStatus {
  for (const one of history)
    if (one.kind === "step" && one.step.kind === "report" && one.step.workflow === name)
      return one.step.error === null ? "completed" : "failed";
  return attempts.some(({ workflow }) => workflow === name) ? "running" : "waiting";
}

/**
 * Attempts, with those of finished workflows closed: a core waiting for a failed setup never reports an end, and a core
 * lost later has lost nothing of the workflow.
 */
export function attemptsOf(run: Pick<RunState, "attempts" | "history">): readonly RunAttempt[] {
  const over = new Map<string, number>();
  const lost = new Map<number, number>();
  for (const [at, one] of run.history.entries()) {
    if (one.kind === "coreLost") lost.set(one.core, at);
    else if (one.kind === "step" && one.step.kind === "report") over.set(one.step.workflow, at);
  }
  return run.attempts.map((one) => {
    const endedAt = one.status === "lost" ? (lost.get(one.core) ?? 0) : Number.POSITIVE_INFINITY;
    const isOver = (over.get(one.workflow) ?? Number.POSITIVE_INFINITY) < endedAt;
    return isOver ? { ...one, status: "finished" } : one;
  });
}

/** `summary`: of a finished job; null: it left none. */
export function workflowViews(
  run: RunState,
  { endedAt, phase }: Pick<DatacenterJob, "endedAt" | "phase">,
  summary: RunSummary | null,
): readonly WorkflowView[] {
  const views = workflowsInLog(run);
  if (phase !== "ended") return views;
  const known = views.map(({ attempts, ...one }) => ({
    ...one,
    attempts: attempts.map((attempt) => endedWith(attempt, endedAt)),
  }));
  return endedWorkflows(run.submission?.manifests ?? [], known, summary);
}

/** Closes an attempt with its job when nothing else recorded its end. */
function endedWith(attempt: AttemptView, endedAt: number | undefined): AttemptView {
  if (attempt.status !== "running") return attempt;
  return { ...attempt, status: "finished", endedAt: endedAt ?? null };
}

function workflowsInLog(run: RunState): readonly WorkflowView[] {
  const attempts = attemptsOf(run);
  return (run.submission?.manifests ?? []).map(({ name }) => {
    const own = attempts.filter(({ workflow }) => workflow === name);
    return {
      name,
      status: workflowStatus(run, name),
      attempts: own.map(({ workflow: _, ...one }) => ({ ...one, ...timesOf(one, name, run) })),
    };
  });
}

/** When an attempt began and finished, and why it was lost. */
function timesOf(
  { core, status, token }: Pick<AttemptView, "core" | "status" | "token">,
  workflow: string,
  { createdAt, history, waitedMs }: RunState,
): Pick<AttemptView, "startedAt" | "endedAt" | "reason"> {
  const began = history.findIndex(
    (one) => one.kind === "step" && "execution" in one.step && one.step.execution === token,
  );
  const after = history.slice(Math.max(0, began));
  const end =
    status === "running"
      ? undefined
      : after.find((one) =>
          one.kind === "coreLost"
            ? one.core === core
            : one.kind === "step" &&
              ((one.step.kind === "finished" && one.step.core === core) ||
                one.step.kind === "report") &&
              one.step.workflow === workflow,
        );
  const zero = createdAt + waitedMs;
  return {
    startedAt: zero + (history[began]?.at ?? 0),
    endedAt: end === undefined ? null : zero + end.at,
    reason: end?.kind === "coreLost" ? end.what : null,
  };
}
