/** Cores lost in a run: what ran there, which requests are not counted, and what replaced it. */

import { isoText } from "../../base/civil.ts";
import { planDurationMs } from "../plan/load.ts";
import { formatCount } from "./format.ts";
import { costOf, dealtText } from "./load-figures.ts";
import type { LossFigures } from "./loss-figures.ts";
import type { Loss } from "./model.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";

interface LostCore {
  readonly core: number;
  /** Description of the loss and the core. */
  readonly what: string;
  /** The worker that had it; null in a run of one machine. */
  readonly worker: string | null;
  readonly figures: LossFigures;
  /** The knowledge of what it had generated is lost. */
  readonly isUnknown: boolean;
  /** Wall-clock milliseconds; not finite when the run does not know it. */
  readonly wallMs: number;
  readonly atSeconds: number;
  /** Time of the run when its loss was agreed on. */
  readonly lostAtMs: number;
}

interface Joined {
  readonly core: number;
  readonly worker: string | null;
}

export class Losses {
  readonly #lost: LostCore[] = [];
  /** Replacements by lost core. */
  readonly #joined = new Map<number, Joined>();
  /** Since when a lost core generates no more load. */
  readonly #over = new Map<number, number>();
  /** How much earlier than recorded they may have been lost. */
  readonly #behind = new Map<number, number>();
  /** The run ended before its plan: isolated cores continue with the plan. */
  isCutShort = false;

  has(core: number): boolean {
    return this.#lost.some((one) => one.core === core);
  }

  add(lost: LostCore): void {
    this.#lost.push(lost);
  }

  /** Cores that joined the run after its start. */
  get joinedCores(): readonly number[] {
    return [...this.#joined.values()].map(({ core }) => core);
  }

  joined(core: number, instead: number, worker: string | null): void {
    this.#joined.set(instead, { core, worker });
  }

  /** Null: it may still run unseen, as far as is known. */
  over(core: number, atMs: number | null): void {
    if (atMs === null) this.#over.delete(core);
    else this.#over.set(core, atMs);
  }

  /** The time of the run may be behind the time at which cores were lost so far. */
  behind(ms: number): void {
    for (const { core } of this.#lost) this.#behind.set(core, ms);
  }

  /** `named`: returns a workflow, or the flows of a mix. */
  list(named: (workflow: string) => readonly WorkflowAggregate[], nowMs: number): Loss[] {
    return this.#lost.map((lost) => {
      const { figures } = lost;
      const measured = figures.workflow === null ? [] : named(figures.workflow);
      return this.#loss(lost, measured, nowMs);
    });
  }

  /** Requests that a silent worker may have made since it was given up; null when unknown. */
  #unseenSince(lost: LostCore, ran: Measured, nowMs: number): number | null {
    const { core, figures, lostAtMs, worker } = lost;
    // A lost process of this machine has terminated.
    if (worker === null || ran.length === 0) return 0;
    const overAtMs = this.#over.get(core);
    if (overAtMs === undefined && (this.isCutShort || ran.some(isOverEarlier))) return null;
    const noticedMs = figures.noticedMs ?? lostAtMs;
    const untilMs = overAtMs ?? Math.min(nowMs, noticedMs + planLeftMs(ran, figures.measuredMs));
    const ms = Math.max(0, untilMs + (this.#behind.get(core) ?? 0) - noticedMs);
    return Math.ceil(((figures.requestsPerSecondMax ?? 0) * ms) / 1_000);
  }

  /**
   * Position of its share in the plan, from the core itself or the one it replaced without a report. Null: the
   * knowledge is lost.
   */
  #reachedMs({ core, figures, isUnknown }: LostCore): number | null {
    if (figures.measuredMs > 0) return figures.measuredMs;
    if (isUnknown) return null;
    const before = this.#lost.find((one) => this.#joined.get(one.core)?.core === core);
    return before === undefined ? 0 : this.#reachedMs(before);
  }

  #loss(lost: LostCore, ran: Measured, nowMs: number): Loss {
    const { atSeconds, core, figures, wallMs, what, worker } = lost;
    const joined = this.#joined.get(core) ?? null;
    const held = ran.reduce((sum, one) => sum + one.requestsOf(core), 0);
    // Requests counted by another driver of the run may be missing here.
    const unseen = figures.requestsUnseen + Math.max(0, figures.requestsCounted - held);
    const unseenSince = this.#unseenSince(lost, ran, nowMs);
    const isUnbounded = ran.length > 0 && figures.isUnbounded === true;
    const isUnknown = unseenSince === null || lost.isUnknown || isUnbounded;
    const requestsNotCounted = isUnknown ? null : unseen + unseenSince;
    const resumedMs = joined === null ? null : firstOf(ran, joined.core);
    const untilMs = resumedMs ?? Math.max(0, ...ran.map(({ elapsedMs }) => elapsedMs));
    const reachedMs = ran.length === 0 ? untilMs : this.#reachedMs(lost);
    const missingMs = reachedMs === null ? null : Math.max(0, untilMs - reachedMs);
    const cost = costText(lost, ran[0], joined, missingMs);
    return {
      core,
      atSeconds,
      what,
      cost: worker === null ? cost : `${cost}${uncountedText(requestsNotCounted)}`,
      ...(Number.isFinite(wallMs) ? { at: isoText(wallMs) } : {}),
      ...{ worker, users: figures.users, requestsNotCounted },
      exact: requestsNotCounted === 0,
      missingMs,
      dealtAgainTo: joined === null ? null : (joined.worker ?? `core ${joined.core}`),
    };
  }
}

function costText(
  { core, isUnknown }: LostCore,
  ran: WorkflowAggregate | undefined,
  joined: Joined | null,
  missingMs: number | null,
): string {
  if (ran === undefined && isUnknown)
    return "it is unknown what ran there: the manager that knew was lost as well";
  return joined === null || ran === undefined
    ? costOf(core, ran, isUnknown)
    : dealtText(ran, joined, missingMs);
}

function uncountedText(requests: number | null): string {
  if (requests === null) return "; an unknown number of its requests is missing from the results";
  return requests === 0
    ? ""
    : `; up to ${formatCount(requests)} of its requests are missing from the results`;
}

type Measured = readonly WorkflowAggregate[];

/** How long a core continues its plan from the given measured time; infinite when unknown. */
function planLeftMs(ran: Measured, measuredMs: number): number {
  const left = ran.map(({ hasPaused, manifest: { gracefulStopMs, load, warmupMs } }) => {
    const durationMs = hasPaused ? null : planDurationMs(load);
    return durationMs === null ? null : warmupMs + durationMs - measuredMs + gracefulStopMs;
  });
  return Math.max(0, ...left.map((one) => one ?? Number.POSITIVE_INFINITY));
}

/** True when an isolated core may continue: the workflow has no planned end, or failed before. */
function isOverEarlier({ manifest, status }: WorkflowAggregate): boolean {
  if (status === "running") return false;
  return status !== "completed" || planDurationMs(manifest.load) === null;
}

/** Cost of losing a core now; `ran`: what measures there. */
export function lossFigures(ran: Measured, core: number, nowMs: number): LossFigures {
  const shares = ran.map((workflow) => workflow.shareOf(core, nowMs));
  const [first] = ran;
  const sum = (value: (share: (typeof shares)[number]) => number): number =>
    shares.reduce((all, share) => all + value(share), 0);
  return {
    workflow: first?.manifest.mix?.name ?? first?.manifest.name ?? null,
    users: sum(({ users }) => users),
    requestsCounted: sum(({ requestsCounted }) => requestsCounted),
    requestsUnseen: sum(({ requestsUnseen }) => requestsUnseen),
    requestsPerSecondMax: sum(({ requestsPerSecondMax = 0 }) => requestsPerSecondMax),
    measuredMs: Math.max(0, ...shares.map(({ measuredMs }) => measuredMs)),
    isUnbounded: shares.some((share) => share.isUnbounded),
    noticedMs: nowMs,
  };
}

/** When a core last reported, which is when its loss began: it is noticed later. */
export function lossBeganMs(ran: Measured, { measuredMs }: LossFigures, nowMs: number): number {
  const [first] = ran;
  if (first === undefined || measuredMs === 0) return nowMs;
  return Math.min(nowMs, first.momentOf(measuredMs));
}

/** The measured time at which a core began; null before its first report. */
function firstOf(ran: Measured, core: number): number | null {
  const begun = ran.flatMap((one) => one.loadOf(core)?.firstMs ?? []);
  return begun.length === 0 ? null : Math.min(...begun);
}
