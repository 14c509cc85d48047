/**
 * Tracks the progress of this worker's load, and when to request an extension from managers. Cores send frames many
 * times a second while they run; an execution without frames is stalled, whatever the reason. (AD-26.1, AD-19.13)
 *
 *     started ─▶ frame, frame … ─▶ none for long ─▶ ask every manager ── granted ─▶ ask again before it ends
 *                    ▲────── any frame ─────┘                        └─ denied ──▶ silent until a frame arrives
 */

import type { Millis } from "../../base/brand.ts";
import type { CoreEvent } from "../../load/job/core-messages.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import { planDurationMs } from "../../load/plan/load.ts";
import type { ExtensionAnswer, ExtensionRequest } from "../extension-messages.ts";
import type { RelayedCommand } from "../messages.ts";
import { EXTENSION_DEFAULTS } from "../overload/extensions.ts";
import type { WorkReport } from "../overload/worker-progress.ts";

const NEVER = Number.POSITIVE_INFINITY;
/** Leaves time for an answer and one retry before the first deadline. */
const ASK_AFTER_MS = (EXTENSION_DEFAULTS.baseMs * 2) / 3;
/** Delay before an unanswered request is repeated. */
const REPEAT_MS = 1_000;
/** An execution advances once per interval. Cores send less often while their manager is late, but not this rarely. */
const COUNTED_MS = 1_000;
/** Timer delay from which the process counts as starved of CPU. */
const LATE_MS = 1_000;

interface Execution {
  /** Null until the execution is started; nothing is expected of it before. */
  startedAt: number | null;
  lastFrameAt: number;
  readonly planMs: number;
}

export class LoadProgress {
  /** By slot and execution. */
  readonly #executions = new Map<number, Map<number, Execution>>();
  /** Planned duration by slot and workflow. */
  readonly #planned = new Map<number, ReadonlyMap<string, number>>();
  #advance = 0;
  /** When to ask managers if nothing advances until then. */
  #askAt = NEVER;
  #number = 0;
  /** A manager has answered the last request. */
  #isAnswered = false;
  /** Something advanced since the last request. */
  #hasMoved = true;
  #lateAt = Number.NEGATIVE_INFINITY;

  /** Computed, because a core may prepare the same execution twice. */
  get #running(): number {
    let running = 0;
    for (const of of this.#executions.values())
      for (const { startedAt } of of.values()) if (startedAt !== null) running++;
    return running;
  }

  get report(): WorkReport {
    return { running: this.#running, advance: this.#advance };
  }

  /** Infinite while there is nothing to ask. */
  get askAt(): number {
    return this.#running === 0 ? NEVER : this.#askAt;
  }

  onCommand(slot: number, command: RelayedCommand, now: Millis): void {
    if (command.kind === "prepare") {
      const planMs = this.#planned.get(slot)?.get(command.workflow) ?? 0;
      const of = this.#executions.get(slot) ?? new Map<number, Execution>();
      this.#executions.set(
        slot,
        of.set(command.execution, { startedAt: null, lastFrameAt: 0, planMs }),
      );
    } else if (command.kind === "start") {
      const execution = this.#executions.get(slot)?.get(command.execution);
      if (execution === undefined || execution.startedAt !== null) return;
      execution.startedAt = now - command.planMs;
      execution.lastFrameAt = now;
      this.#move(now);
    }
  }

  onEvent(slot: number, event: CoreEvent, now: Millis): void {
    if (event.kind === "loaded")
      this.#planned.set(slot, new Map(event.manifests.map((one) => [one.name, planMsOf(one)])));
    else if (event.kind === "frame") {
      const running = this.#executions.get(slot)?.get(event.execution);
      if (running === undefined) return;
      const isSame = Math.floor(running.lastFrameAt / COUNTED_MS) === Math.floor(now / COUNTED_MS);
      running.lastFrameAt = now;
      this.#move(now, isSame ? 0 : 1);
    } else if (event.kind === "finished" || event.kind === "failed") {
      this.#executions.get(slot)?.delete(event.execution);
      this.#move(now);
    }
  }

  onGone(slot: number): void {
    this.#executions.delete(slot);
    this.#planned.delete(slot);
  }

  /** Records how late a timer fired. */
  onLate(lateMs: number, now: Millis): void {
    if (lateMs >= LATE_MS) this.#lateAt = now;
  }

  #move(now: number, advance = 1): void {
    this.#advance += advance;
    this.#hasMoved = true;
    this.#askAt = now + ASK_AFTER_MS;
  }

  /** Returns the next request, or repeats the last one if no manager has answered it. */
  ask(now: Millis): ExtensionRequest {
    if (this.#isAnswered || this.#hasMoved) this.#number++;
    this.#isAnswered = false;
    this.#hasMoved = false;
    this.#askAt = now + REPEAT_MS;
    const passed = [...this.#executions.values()].flatMap((of) =>
      [...of.values()].flatMap(({ planMs, startedAt, lastFrameAt }) =>
        startedAt === null ? [] : [{ planMs, passedMs: Math.min(planMs, lastFrameAt - startedAt) }],
      ),
    );
    const shares = passed.map(({ passedMs, planMs }) => (planMs === 0 ? 0 : passedMs / planMs));
    const isLate = now - this.#lateAt < ASK_AFTER_MS;
    return {
      number: this.#number,
      reason: isLate ? "resource_contention" : "long_workflow",
      progress: shares.reduce((sum, one) => sum + one, 0) / Math.max(1, shares.length),
      estimatedMs: Math.max(0, ...passed.map(({ passedMs, planMs }) => planMs - passedMs)),
      running: this.#running,
    };
  }

  /**
   * Managers answer independently: the worker asks again before the first grant ends. After a denial it stays silent
   * until something advances.
   */
  answered(
    number: number,
    { deadlineMs, extensionMs, granted }: ExtensionAnswer,
    now: Millis,
  ): void {
    if (number !== this.#number || this.#hasMoved) return;
    const at = granted ? now + Math.max(REPEAT_MS, deadlineMs - extensionMs / 2) : NEVER;
    this.#askAt = this.#isAnswered ? Math.min(this.#askAt, at) : at;
    this.#isAnswered = true;
  }
}

function planMsOf({ load }: WorkflowManifest): number {
  return "durationMsMax" in load ? load.durationMsMax : (planDurationMs(load) ?? 0);
}
