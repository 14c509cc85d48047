/** Parts of long lists, and the figures of a job, as gates and managers tell them alike. */

import type { RunSummary } from "../load/results/model.ts";
import { JOBS_PAGE_MAX, type JobEventView, type JobPlace } from "./messages.ts";

/** The jobs after this one in the order of their creation, as many as one answer holds. */
export function pageOfJobs<Job extends JobPlace>(
  jobs: readonly Job[],
  after: JobPlace | null,
): { readonly page: readonly Job[]; readonly more: boolean } {
  const rest = jobs.filter((job) => after === null || isBefore(after, job)).sort(inOrder);
  return { page: rest.slice(0, JOBS_PAGE_MAX), more: rest.length > JOBS_PAGE_MAX };
}

function isBefore(one: JobPlace, other: JobPlace): boolean {
  return inOrder(one, other) < 0;
}

function inOrder(one: JobPlace, other: JobPlace): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
}

/** Says at the end of a history that some of it is missing. */
export function cutShort(
  events: readonly JobEventView[],
  { datacenter, text, who }: Pick<JobEventView, "datacenter" | "text" | "who">,
): JobEventView {
  const at = events.reduce((latest, event) => Math.max(latest, event.at), 0);
  return { at, kind: "cutShort", who, token: null, datacenter, text };
}

export function figuresOf(summary: RunSummary | null): {
  readonly requests: number;
  readonly failed: number;
  readonly ratePerSecond: number;
} {
  const { failed = 0, ratePerSecond = 0, requests = 0 } = summary?.totals ?? {};
  return { requests, failed, ratePerSecond };
}
