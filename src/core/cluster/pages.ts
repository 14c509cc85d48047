/** Paging of long lists and totals of a job, shared by gates and managers. */

import type { RunSummary } from "../load/results/model.ts";
import { JOBS_PAGE_MAX, type JobEventView, type JobPlace } from "./messages.ts";

/** Returns one page of jobs after the given one, in order of creation. */
export function pageOfJobs<Job extends JobPlace>(
  jobs: readonly Job[],
  after: JobPlace | null,
): { readonly page: readonly Job[]; readonly more: boolean } {
  const rest = jobs.filter((job) => after === null || isBefore(after, job)).sort(compareJobs);
  return { page: rest.slice(0, JOBS_PAGE_MAX), more: rest.length > JOBS_PAGE_MAX };
}

function isBefore(one: JobPlace, other: JobPlace): boolean {
  return compareJobs(one, other) < 0;
}

function compareJobs(one: JobPlace, other: JobPlace): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
}

/** Event that marks a truncated history. */
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
