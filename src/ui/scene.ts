/**
 * State of the picture besides the run itself: the focused step, messages, the help page, and a bounded history of
 * targets and arrivals. `Scene` is plain data, so a picture is a function of (run, scene, size); `History` derives from
 * successive updates what a single one does not contain.
 */

import type { LiveRun, LiveStep, LiveWorkflow } from "../core/load/results/live.ts";
import type { StepSummary, WorkflowSummary } from "../core/load/results/model.ts";
import type { TargetPoint } from "./chart.ts";

/** How long each step or page is shown when there are more than fit. (TUI-3) */
const CYCLE_MS = 3_000;

export interface Scene {
  readonly nowMs: number;
  /** Step chosen by hand; null cycles the focus. */
  readonly pinned: number | null;
  readonly help: boolean;
  /** Whether keys can be typed: not when stdin is a pipe. */
  readonly keys: boolean;
  /** Whether there will be a report to open. */
  readonly report: boolean;
  /** Oldest first. */
  readonly messages: readonly string[];
  /** Confirmation of the last key, shown for a short time. */
  readonly notice: string | null;
  readonly targets: readonly TargetPoint[];
  /** Open models: iterations started per second, by workflow. */
  readonly arrivals: ReadonlyMap<string, number>;
}

export const EMPTY_SCENE: Scene = {
  nowMs: 0,
  pinned: null,
  help: false,
  keys: true,
  report: true,
  messages: [],
  notice: null,
  targets: [],
  arrivals: new Map(),
};

export interface StepRow {
  readonly workflow: LiveWorkflow;
  readonly live: LiveStep;
  /** Null only briefly, when the totals lag behind. */
  readonly total: StepSummary | null;
}

/** Steps of all workflows that run or have run, in order; of all when none has begun. */
export function stepRows(live: LiveRun): StepRow[] {
  const begun = live.workflows.filter(({ status }) => status !== "waiting" && status !== "not run");
  return (begun.length > 0 ? begun : live.workflows).flatMap((workflow) => {
    const summary = summaryOf(live, workflow.name);
    return workflow.steps.map((step) => ({
      workflow,
      live: step,
      total: summary?.steps.find(({ name }) => name === step.name) ?? null,
    }));
  });
}

export function summaryOf(live: LiveRun, workflow: string): WorkflowSummary | undefined {
  return live.summary.workflows.find(({ name }) => name === workflow);
}

/** The focused row: the pinned one, else each in turn. */
export function focusOf(count: number, { nowMs, pinned }: Scene): number {
  if (count === 0) return 0;
  const wanted = pinned ?? Math.floor(nowMs / CYCLE_MS);
  return ((wanted % count) + count) % count;
}

interface Page {
  readonly from: number;
  readonly to: number;
}

/** The visible part of a list when `room` entries fit: all, or page after page. */
export function pageOf(count: number, room: number, nowMs: number): Page {
  if (count <= room || room <= 0) return { from: 0, to: Math.min(count, Math.max(0, room)) };
  const page = Math.floor(nowMs / CYCLE_MS) % Math.ceil(count / room);
  return pageWith(count, room, page * room);
}

/** The page with entry `index`; the last page is filled up with the entries before it. */
export function pageWith(count: number, room: number, index: number): Page {
  if (count <= room || room <= 0) return { from: 0, to: Math.min(count, Math.max(0, room)) };
  const from = Math.min(Math.floor(index / room) * room, count - room);
  return { from, to: from + room };
}

const TARGET_POINTS_MAX = 512;
/** Arrivals are measured over at least this long. */
const ARRIVALS_SPAN_SECONDS = 1;

interface Arrived {
  readonly atSeconds: number;
  readonly started: number;
}

export class History {
  #targets: TargetPoint[] = [];
  readonly #arrived = new Map<string, Arrived>();
  readonly #arrivals = new Map<string, number>();

  get targets(): readonly TargetPoint[] {
    return this.#targets;
  }

  get arrivals(): ReadonlyMap<string, number> {
    return this.#arrivals;
  }

  observe(live: LiveRun): void {
    this.#observeTarget(live);
    for (const { name, arrivals } of live.summary.workflows) {
      if (arrivals === null) continue;
      const before = this.#arrived.get(name);
      const span = live.elapsedSeconds - (before?.atSeconds ?? 0);
      if (before !== undefined && span < ARRIVALS_SPAN_SECONDS && span >= 0) continue;
      if (before !== undefined && span > 0 && arrivals.started >= before.started) {
        this.#arrivals.set(name, (arrivals.started - before.started) / span);
      }
      this.#arrived.set(name, { atSeconds: live.elapsedSeconds, started: arrivals.started });
    }
  }

  /** A target applies until the next point, so only changes are kept; when full, every second one. */
  #observeTarget(live: LiveRun): void {
    const perSecond = targetRequests(live);
    const last = this.#targets.at(-1);
    if (last !== undefined && Object.is(last.perSecond, perSecond)) return;
    this.#targets.push({ atSeconds: live.elapsedSeconds, perSecond });
    if (this.#targets.length > TARGET_POINTS_MAX) {
      this.#targets = this.#targets.filter((_, index) => index % 2 === 0);
    }
  }
}

/** Requests per second asked for now: every step runs once per arrival. NaN when a closed model runs too. */
function targetRequests({ workflows }: LiveRun): number {
  let sum = Number.NaN;
  for (const { status, targetPerSecond, steps } of workflows) {
    if (status !== "running") continue;
    if (targetPerSecond === null) return Number.NaN;
    sum = (Number.isNaN(sum) ? 0 : sum) + targetPerSecond * steps.length;
  }
  return sum;
}
