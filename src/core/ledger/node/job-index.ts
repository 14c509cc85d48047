/**
 * The jobs of this node by status, so that listing running jobs does not scan all jobs. Derived from the groups, which
 * are restored from checkpoint and log, and therefore as current as they are after a restart.
 */

import type { NodeId } from "../../base/ids.ts";
import type { JobId } from "../job/job-id.ts";
import { isTerminal, type JobStatus } from "../job/job-state.ts";
import type { Group } from "./group.ts";

/** Jobs of one answer. */
export const JOBS_LISTED_MAX = 1_000;

export interface JobQuery {
  /** Any of these; empty: all. */
  readonly statuses: readonly JobStatus[];
  /** The node that leads the job, as far as this one knows; null: any or none. */
  readonly owner: string | null;
  /** Only ids that begin so. */
  readonly prefix: string;
  /** Only ids above this one: the last id of the previous page. */
  readonly after: string;
  readonly limit: number;
}

interface JobRow {
  readonly jobId: JobId;
  readonly status: JobStatus;
  /** Leader of the job's group as known here; null if unknown. */
  readonly owner: NodeId | null;
  /** The owner's fence. */
  readonly view: number;
  readonly seq: number;
  readonly datacenters: readonly string[];
}

interface JobPage {
  /** In the order of their ids. */
  readonly jobs: readonly JobRow[];
  /** More match after the last one. */
  readonly more: boolean;
}

export class JobIndex {
  readonly #byStatus = new Map<JobStatus, Set<Group>>();
  readonly #statuses = new Map<Group, JobStatus>();

  onApplied(group: Group): void {
    if (group.app.kind !== "job") return;
    const { status } = group.app.state;
    const before = this.#statuses.get(group);
    if (before === status) return;
    if (before !== undefined) this.#byStatus.get(before)?.delete(group);
    this.#statuses.set(group, status);
    const same = this.#byStatus.get(status);
    if (same === undefined) this.#byStatus.set(status, new Set([group]));
    else same.add(group);
  }

  onGone(group: Group): void {
    const status = this.#statuses.get(group);
    if (status !== undefined) this.#byStatus.get(status)?.delete(group);
    this.#statuses.delete(group);
  }

  /** Iterates the jobs that have not finished. */
  *open(): Iterable<Group> {
    for (const [status, groups] of this.#byStatus) if (!isTerminal(status)) yield* groups;
  }

  list(query: JobQuery): JobPage {
    const limit = Math.min(query.limit, JOBS_LISTED_MAX);
    const first: Group[] = [];
    for (const [status, groups] of this.#byStatus) {
      if (status === "ABSENT" || !isOneOf(query.statuses, status)) continue;
      for (const group of groups) if (matches(group, query)) insert(first, group, limit + 1);
    }
    return { jobs: first.slice(0, limit).flatMap(rowOf), more: first.length > limit };
  }
}

function isOneOf(statuses: readonly JobStatus[], status: JobStatus): boolean {
  return statuses.length === 0 || statuses.includes(status);
}

function matches({ id, replica }: Group, { owner, prefix, after }: JobQuery): boolean {
  const { primary, status } = replica.state;
  if (status === "retired" || id <= after || !id.startsWith(prefix)) return false;
  return owner === null || primary === owner;
}

/** Into the smallest so far. Ids rise with time, so most that come late are left out at once. */
function insert(smallest: Group[], group: Group, limit: number): void {
  const last = smallest.at(-1);
  if (smallest.length >= limit && last !== undefined && group.id >= last.id) return;
  let [low, high] = [0, smallest.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((smallest[middle]?.id ?? "") < group.id) low = middle + 1;
    else high = middle;
  }
  smallest.splice(low, 0, group);
  if (smallest.length > limit) smallest.pop();
}

function rowOf({ app, replica }: Group): JobRow[] {
  if (app.kind !== "job") return [];
  const { jobId, status, appliedSeq: seq, assignedDcs: datacenters } = app.state;
  const { primary: owner, knownView: view } = replica.state;
  return [{ jobId, status, owner, view, seq, datacenters }];
}
