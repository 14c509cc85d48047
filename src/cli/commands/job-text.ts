/** A job of a cluster as `jobs show` and `jobs events` print it: for people, and as JSON for tools. */

import { shortIdOf } from "../../client/job-names.ts";
import { clean } from "../../core/base/terminal-text.ts";
import type { AttemptView, JobEventView, JobView } from "../../core/cluster/messages.ts";
import { formatCount, formatCounted } from "../../core/load/results/format.ts";

/** Work of one worker under one token, on all its cores. */
interface Attempt extends Omit<AttemptView, "core"> {
  readonly cores: number;
}

/** Adds the short id to the whole one, for tools that show it to people. */
export function withShortId<Job extends { readonly id: string }>(
  job: Job,
): Job & { short: string } {
  const { id, ...rest } = job;
  return { id, short: shortIdOf(id), ...rest } as Job & { short: string };
}

/** Output of `jobs show --json`: tools rely on these names. Times are milliseconds of the wall clock. */
export function jobJson(view: JobView): object {
  const { createdAt, datacenters, fence, id, leader, lost, reason, status, thresholds } = view;
  return {
    ...withShortId({ id }),
    ...{ status, reason, createdAt, leader, fence },
    datacenters: datacenters.map(({ job: _job, reason: _reason, ...one }) => one),
    workflows: view.workflows.map(({ attempts, ...workflow }) => ({
      ...workflow,
      attempts: byWorker(attempts),
    })),
    ...{ thresholds, lost },
  };
}

export function jobText(view: JobView): string {
  const { cores, datacenters, fence, id, leader, name, reason, status, workflows } = view;
  const lines = [
    `${shortIdOf(id)}  ${name}  ${id}`,
    `  ${status}${reason === null ? "" : `: ${reason}`}`,
    `  led by ${leader ?? "nobody now"} (fence ${fence}), ${formatCounted(cores, "core")}`,
  ];
  for (const one of datacenters)
    lines.push(
      `  ${one.name}: ${one.status}, ${formatCounted(one.workers, "worker")}, ` +
        `${formatCounted(one.cores, "core")}, ${formatCounted(one.requests, "request")}, ` +
        `${formatCount(one.failed)} failed` +
        (one.reason === null ? "" : ` (${one.reason})`),
    );
  for (const workflow of workflows) {
    lines.push(`  ${workflow.name}: ${workflow.status}`);
    for (const { cores: own, reason: why, status: how, token, worker } of byWorker(
      workflow.attempts,
    ))
      lines.push(
        `    ${formatCounted(own, "core")} of ${worker}, token ${token}: ${how}${why === null ? "" : ` (${why})`}`,
      );
  }
  for (const { actualText, expression, passed } of view.thresholds)
    lines.push(`  ${passed ? "holds" : "fails"}: ${expression} (${actualText})`);
  for (const { cost, what } of view.lost) lines.push(`  lost: ${what}; ${cost}`);
  return `${lines.map(clean).join("\n")}\n`;
}

/** Length of the longest kind, JobCancellationRequested. */
const KIND_WIDTH = 24;

export function eventsText(events: readonly JobEventView[]): string {
  return events
    .map(({ at, datacenter, kind, text, token, who }) => {
      const where = datacenter === "" ? "gates" : datacenter;
      const fenced = token === null ? "" : `token ${token}`;
      const what = `${kind.padEnd(KIND_WIDTH)} ${who.padEnd(12)}`;
      return `${timeOf(at)}  ${where.padEnd(8)} ${what} ${fenced.padEnd(16)} ${text}`;
    })
    .map((line) => `${clean(line).trimEnd()}\n`)
    .join("");
}

/** The last core to end sets the time; one lost core makes its worker's part a lost one. */
function byWorker(attempts: readonly AttemptView[]): readonly Attempt[] {
  const found = new Map<string, Attempt>();
  for (const { core: _core, ...one } of attempts) {
    const key = `${one.worker} ${one.token}`;
    const known = found.get(key);
    found.set(key, known === undefined ? { ...one, cores: 1 } : together(known, one));
  }
  return [...found.values()];
}

function together(known: Attempt, one: Omit<AttemptView, "core">): Attempt {
  const all = [known.status, one.status];
  const status = all.includes("running") ? "running" : all.includes("lost") ? "lost" : "finished";
  const ended =
    known.endedAt === null || one.endedAt === null ? null : Math.max(known.endedAt, one.endedAt);
  return {
    ...known,
    ...{ cores: known.cores + 1, status, endedAt: ended, reason: known.reason ?? one.reason },
    startedAt: Math.min(known.startedAt, one.startedAt),
  };
}

function timeOf(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
