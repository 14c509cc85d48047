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
  { datacenter, heardAt, hindrance, job, observed, ratePerSecond, status }: Branch,
  now: number,
): JobDatacenterView {
  return {
    ...{ name: datacenter, status, job },
    reason: hindrance ?? observed?.reason ?? null,
    workers: observed?.workers ?? 0,
    cores: observed?.cores ?? 0,
    requests: observed?.requests ?? 0,
    failed: observed?.failed ?? 0,
    ratePerSecond,
    asOfMs: heardAt === null ? null : Math.max(0, Math.round(now - heardAt)),
  };
}
