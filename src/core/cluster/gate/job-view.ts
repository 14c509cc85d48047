/** View of a job for `jobs list` and `jobs show`. */

import type { JobState } from "../../ledger/job/job-state.ts";
import {
  type JobDatacenterView,
  type JobView,
  PART_STATUSES,
  type WorkflowView,
} from "../messages.ts";
import { figuresOf } from "../pages.ts";
import type { Branch } from "./branch.ts";
import { chooseDatacenters } from "./choice.ts";
import type { GateContext } from "./context.ts";
import type { JobLeader } from "./job-leader.ts";
import type { JobSpec } from "./spec.ts";
import { createdAtOf, hasJobEnded, reasonOf, statusOf } from "./status.ts";
import type { JobGroup } from "./types.ts";

/** `leader`: null if another gate leads the job and knows more. */
export function jobView(
  { primary, state, view }: JobGroup,
  spec: JobSpec | null,
  leader: JobLeader | null,
  context: Pick<GateContext, "calls" | "datacenters" | "now" | "places">,
): JobView {
  const { calls, now } = context;
  const kept = keptViews(state, (datacenter) => calls.reachedIn(datacenter).length);
  const seen = (leader?.branches ?? []).map((branch): JobDatacenterView => {
    const view = datacenterView(branch, now);
    const had = kept.find(({ name }) => name === view.name);
    return {
      ...view,
      // The outcome comes from the job's log, whatever was last reported or hindered it then.
      ...(hasJobEnded(state)
        ? { status: had?.status ?? view.status, reason: branch.observed?.reason ?? null }
        : {}),
      managers: calls.reachedIn(branch.datacenter).length,
      // A finished part has released its cores.
      workers: view.workers || (had?.workers ?? 0),
      cores: view.cores || (had?.cores ?? 0),
    };
  });
  const datacenters = seen.length > 0 ? seen : kept;
  return {
    id: state.jobId,
    name: spec?.submission.name ?? "",
    status: leader?.status ?? (unaccepted(state).length > 0 ? "QUEUED" : statusOf(state)),
    reason:
      leader === null
        ? (reasonOf(state) ?? waitReason(state, spec, primary, context))
        : (leader.reason ?? context.places.of(state)),
    createdAt: createdAtOf(state),
    leader: primary,
    fence: view,
    cores: datacenters.reduce((sum, { cores }) => sum + cores, 0),
    ...{ workflows: [], datacenters, thresholds: [], lost: [] },
  };
}

/** Datacenters that were asked for cores and have not confirmed them yet. */
function unaccepted({ accepted, run, status }: JobState): readonly string[] {
  if (status !== "DISPATCHED" && status !== "ACCEPTED") return [];
  const names = run.dispatched.map(({ dcId }) => dcId);
  return names.filter((name) => !accepted.some(({ dcId }) => dcId === name));
}

/** Reason as known to every gate; only the leader knows the position in a datacenter's queue. */
function waitReason(
  state: JobState,
  spec: JobSpec | null,
  leader: string | null,
  { datacenters, places }: Pick<GateContext, "datacenters" | "places">,
): string | null {
  const asked = unaccepted(state).join(", ");
  if (asked !== "")
    return `${asked}: it waits for cores; ${leader ?? "its leader"} knows its place`;
  const place = places.of(state);
  if (place === null || spec === null) return place;
  const { routing, submission } = spec;
  const choice = chooseDatacenters(routing, submission.cores, {
    ...{ rooms: datacenters.rooms(), avoided: new Map(), now: 0 },
    routingOrder: (names) => names,
  });
  return choice.kind === "wait" ? `${choice.reason} (${place})` : place;
}

/** Views from the log, for a job that no branch follows here. */
function keptViews(
  state: JobState,
  managersOf: (datacenter: string) => number,
): readonly JobDatacenterView[] {
  const { accepted, run } = state;
  const waiting = unaccepted(state);
  return run.dispatched.map(({ cores, dcId }) => {
    const result = run.results.find((one) => one.dcId === dcId);
    const status = PART_STATUSES.find((one) => one === result?.finalStatus);
    const workers = accepted.find((one) => one.dcId === dcId)?.workerCount ?? 0;
    const managers = managersOf(dcId);
    // A job that finished before the datacenter reported anything took its part with it.
    const unreported = hasJobEnded(state)
      ? statusOf(state)
      : waiting.includes(dcId)
        ? "QUEUED"
        : "STARTING";
    const { completed = 0, failed = 0 } = result ?? {};
    const figures = { ...figuresOf(null), requests: completed + failed, failed };
    return {
      ...{ name: dcId, status: status ?? (result === undefined ? unreported : "FAILED") },
      ...{ reason: null, job: "", managers, workers, cores, ...figures, asOfMs: null },
    };
  });
}

/** Statuses by precedence: unfinished before finished, failed before successful. */
const WORST_FIRST = ["running", "waiting", "failed"];

/** Merges the workflows of all parts of a job, with the attempts of all datacenters. */
export function workflowsOf(parts: readonly JobView[]): readonly WorkflowView[] {
  const found = new Map<string, WorkflowView>();
  for (const { attempts, name, status } of parts.flatMap(({ workflows }) => workflows)) {
    const known = found.get(name);
    const both = [known?.status ?? status, status];
    found.set(name, {
      name,
      status: WORST_FIRST.find((one) => both.includes(one)) ?? status,
      attempts: [...(known?.attempts ?? []), ...attempts],
    });
  }
  return [...found.values()];
}

function datacenterView(
  { datacenter, lastSeenAt, hindrance, job, observed, ratePerSecond, status }: Branch,
  now: number,
): Omit<JobDatacenterView, "managers"> {
  return {
    ...{ name: datacenter, status, job },
    reason: hindrance ?? observed?.reason ?? null,
    workers: observed?.workers ?? 0,
    cores: observed?.cores ?? 0,
    requests: observed?.requests ?? 0,
    failed: observed?.failed ?? 0,
    ratePerSecond,
    asOfMs: lastSeenAt === null ? null : Math.max(0, Math.round(now - lastSeenAt)),
  };
}
