/** A job of a cluster as `jobs show` and `jobs events` print it: for people, and as JSON for tools. */

import type { AttemptView, JobEventView, JobView } from "../../core/tiers/messages.ts";

/** What one worker does under one token, on all the cores that it has for it. */
interface Attempt extends Omit<AttemptView, "core"> {
  readonly cores: number;
}

/** As `jobs show --json` prints it: tools rely on these names. Times are milliseconds of the wall clock. */
export function jobJson(view: JobView): object {
  const { createdAt, datacenters, fence, id, leader, lost, reason, status, thresholds } = view;
  return {
    ...{ id, status, reason, createdAt, leader, fence },
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
    `${id}  ${name}`,
    `  ${status}${reason === null ? "" : `: ${reason}`}`,
    `  led by ${leader ?? "nobody now"} (fence ${fence}), ${cores} cores`,
  ];
  for (const one of datacenters)
    lines.push(
      `  ${one.name}: ${one.status}, ${one.workers} workers, ${one.cores} cores, ` +
        `${one.requests} requests, ${one.failed} failed` +
        (one.reason === null ? "" : ` (${one.reason})`),
    );
  for (const workflow of workflows) {
    lines.push(`  ${workflow.name}: ${workflow.status}`);
    for (const { cores: own, reason: why, status: how, token, worker } of byWorker(
      workflow.attempts,
    ))
      lines.push(
        `    ${own} cores of ${worker}, token ${token}: ${how}${why === null ? "" : ` (${why})`}`,
      );
  }
  for (const { actualText, expression, passed } of view.thresholds)
    lines.push(`  ${passed ? "holds" : "fails"}: ${expression} (${actualText})`);
  for (const { cost, what } of view.lost) lines.push(`  lost: ${what}; ${cost}`);
  return `${lines.join("\n")}\n`;
}

export function eventsText(events: readonly JobEventView[]): string {
  return events
    .map(({ at, datacenter, kind, text, token, who }) => {
      const where = datacenter === "" ? "gates" : datacenter;
      const fenced = token === null ? "" : `token ${token}`;
      return `${timeOf(at)}  ${where.padEnd(8)} ${kind.padEnd(16)} ${who.padEnd(12)} ${fenced.padEnd(16)} ${text}`;
    })
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}

/** The last to end says when; one lost core makes its worker's part a lost one. */
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
