/** Results about the load itself: its model, its progress, what was required and reached. */

import { formatDuration } from "../../base/duration.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { isOpen, isOpenEnded, planDurationMs, planVusMax } from "../plan/load.ts";
import { NAMES_MAX, OTHER_NAME, UNNAMED_MAX } from "../stats/names.ts";
import { formatCount, formatPercent, formatRate } from "./format.ts";
import type { WorkflowSummary } from "./model.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";
import type { WorkflowData } from "./workflow-data.ts";

export function progressOf(workflow: WorkflowAggregate, warmupMs: number, nowMs: number): number {
  if (workflow.status === "waiting" || workflow.status === "not run") return 0;
  if (workflow.status !== "running") return 1;
  const { load } = workflow.manifest;
  if (load.kind === "shared") return Math.min(1, workflow.iterations / load.iterations);
  if (load.kind === "perUser")
    return Math.min(1, workflow.iterations / (load.iterations * load.vus));
  const length = planDurationMs(load);
  if (length === null) return 0;
  return Math.min(1, (nowMs - workflow.startedAtMs) / (length + warmupMs));
}

/** Known when all workflows are in one layer and of fixed length; layers make the end a guess. */
export function totalSecondsOf(manifests: readonly WorkflowManifest[]): number | null {
  const lengths = manifests.map(({ load, startAfterMs, warmupMs }) => {
    const ms = planDurationMs(load);
    return ms === null ? null : startAfterMs + ms + warmupMs;
  });
  const alone = manifests.every(({ dependsOn }) => dependsOn.length === 0);
  if (!alone || lengths.some((ms) => ms === null)) return null;
  return Math.max(...lengths.map((ms) => ms ?? 0)) / 1_000;
}

/** Users required now; with a rate, the maximum. */
export function targetUsersOf({ activeUsers, manifest, target }: WorkflowAggregate): number | null {
  const { load, mix } = manifest;
  // A load raised by hand raises the bound.
  if (isOpen(load)) return Math.max(planVusMax(load), activeUsers);
  return mix === null ? Math.round(target) : null;
}

export function remarksOf(data: readonly WorkflowData[]): string[] {
  return data
    .filter(({ namesOverflowed }) => namesOverflowed)
    .map(
      ({ name }) =>
        `"${name}" has more names than are kept apart (${NAMES_MAX} steps, of which ${UNNAMED_MAX} are named by ` +
        `their call; ${NAMES_MAX} groups; ${NAMES_MAX} checks): the rest is counted together as "${OTHER_NAME}"`,
    );
}

/** A fixed number of iterations cannot be changed by hand, and a search changes the load itself. */
export function scalable({ manifest }: WorkflowAggregate): boolean {
  return isOpenEnded(manifest.load) && manifest.load.kind !== "search";
}

export function scaleText(factor: number, isChanged: boolean): string {
  if (!isChanged) return "the load stays as it is: a fixed number of iterations cannot be scaled";
  return `the load was set to ${formatPercent(factor)} of the plan`;
}

export function scaleNotes(scale: number | null): string[] {
  if (scale === null) return [];
  const end = `in the end to ${formatPercent(scale)} of the plan`;
  return [`the load was changed by hand during the run, ${end}`];
}

export function doingText(
  { doing, doingSinceMs }: WorkflowAggregate,
  nowMs: number,
): string | null {
  const seconds = Math.floor((nowMs - doingSinceMs) / 1_000);
  return doing === null ? null : `${doing} for ${seconds} s`;
}

/** Consequence of the loss of a core for its workflow. */
export function costOf(
  core: number,
  running: WorkflowAggregate | undefined,
  isUnknown: boolean,
): string {
  if (running === undefined) return "nothing was running on it";
  const { load, name } = running.manifest;
  const others = running.cores.length - 1;
  const share = `1 of ${running.cores.length} cores of "${name}"`;
  const what = isOpen(load) ? "its share of the arrivals" : "its virtual users";
  const rest =
    others === 0 ? "no core is left, so the workflow ends" : `the run goes on with ${others}`;
  const counts = `${isUnknown ? "all" : "the last 0.2 s"} of core ${core}'s counts are lost`;
  return `${share}: ${what} are gone from here on and ${counts}; ${rest}`;
}

/** Describes what is missing where another core replaced a lost one. */
export function dealtText(
  { manifest }: WorkflowAggregate,
  { core, worker }: { readonly core: number; readonly worker: string | null },
  missingMs: number | null,
): string {
  const { load, name } = manifest;
  const at = worker === null ? `core ${core}` : `core ${core} of ${worker}`;
  if (missingMs === null)
    return `its share of "${name}" went on at ${at}: since when nobody had made it is not known`;
  const what = isOpen(load) ? "its arrivals in between were not made" : "its users were missing";
  return `its share of "${name}" went on at ${at} after ${formatDuration(missingMs)}: ${what}`;
}

/** Note of a run that did not wait for its cores. */
export function givenUpNote(users: number): string {
  const underWay = users === 1 ? "1 virtual user" : `${formatCount(users)} virtual users`;
  return (
    `ended at once: the last 0.2 s of the counts, and what ${underWay} had under way, ` +
    "are missing from the results"
  );
}

/** Arrivals that found every user busy; those of lost cores do not indicate a slow generator. */
export function missedByUsers(arrivals: WorkflowData["arrivals"]): number {
  return arrivals === null ? 0 : arrivals.missed - arrivals.missedByLosses;
}

function ofLosses(missed: number): string {
  return missed === 0 ? "" : ` (${formatCount(missed)} of them on lost cores)`;
}

/** A closed run of fewer requests shows no distribution that a stall could distort. */
const CLOSED_NOTE_MIN = 100;

function requestsOf(steps: WorkflowSummary["steps"]): number {
  return steps.reduce((sum, { requests }) => sum + requests, 0);
}

export function modelNotes(workflows: readonly WorkflowSummary[]): string[] {
  const closed = workflows
    .filter(({ model, steps }) => model !== "open" && requestsOf(steps) >= CLOSED_NOTE_MIN)
    .map(({ name }) => `"${name}"`);
  const missed = workflows.filter(
    ({ arrivals, breakpoint }) =>
      arrivals !== null && arrivals.missed > 0 && breakpoint === undefined,
  );
  return [
    ...(closed.length === 0
      ? []
      : [
          `closed model (${closed.join(", ")}): users wait for answers, so a stall of the target also ` +
            "stops new requests; latencies are not corrected for that. Use --rate to measure this.",
        ]),
    ...missed.map(
      ({ arrivals, name }) =>
        `"${name}" missed its rate: ${formatCount(arrivals?.missed ?? 0)} arrivals were due and never ` +
        `began${ofLosses(arrivals?.missedByLosses ?? 0)}, ${formatRate(arrivals?.achievedPerSecond ?? 0)} of ` +
        `${formatRate(arrivals?.targetPerSecond ?? 0)} were reached`,
    ),
  ];
}
