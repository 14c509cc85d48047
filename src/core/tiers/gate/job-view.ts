/** A job as `jobs list` and `jobs show` tell it. */

import type { JobDatacenterView, JobView } from "../messages.ts";
import type { Branch } from "./branch.ts";
import type { JobLeader } from "./job-leader.ts";
import type { JobSpec } from "./spec.ts";
import { createdAtOf, reasonOf, statusOf } from "./status.ts";
import type { JobGroup } from "./types.ts";

/** `leader`: null where another gate leads it, and knows more. */
export function jobView(
  { primary, state, view }: JobGroup,
  spec: JobSpec | null,
  leader: JobLeader | null,
  now: number,
): JobView {
  const datacenters = (leader?.branches ?? []).map((branch) => datacenterView(branch, now));
  return {
    id: state.jobId,
    name: spec?.submission.name ?? "",
    status: leader?.status ?? statusOf(state),
    reason: leader?.reason ?? reasonOf(state),
    createdAt: createdAtOf(state),
    leader: primary,
    fence: view,
    cores: datacenters.reduce((sum, { cores }) => sum + cores, 0),
    workflows: [],
    datacenters,
  };
}

function datacenterView(
  { datacenter, heardAt, hindrance, job, observed, status }: Branch,
  now: number,
): JobDatacenterView {
  const live = observed?.live ?? null;
  const steps = live?.summary.workflows.flatMap((workflow) => workflow.steps) ?? [];
  return {
    ...{ name: datacenter, status, job },
    reason: hindrance ?? observed?.reason ?? null,
    workers: observed?.workers ?? 0,
    cores: observed?.cores ?? 0,
    requests: steps.reduce((sum, { requests }) => sum + requests, 0),
    failed: steps.reduce((sum, { failed }) => sum + failed, 0),
    ratePerSecond: live?.ratePerSecond ?? 0,
    asOfMs: heardAt === null ? null : Math.max(0, Math.round(now - heardAt)),
  };
}
