/**
 * How far the load of this worker is, and when managers must be asked to wait for it: executions that were started,
 * and when their cores last told a figure. A core tells figures many times a second for as long as it runs; one that
 * tells nothing stands still, whatever the reason. (AD-26.1, AD-19.13)
 *
 *     started ─▶ figures, figures … ─▶ none for long ─▶ every manager is asked ── granted ─▶ asked again before it ends
 *                    ▲───── any figure ─────┘                                  └─ denied ──▶ silent until it moves
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
/** Early enough for an answer and its repetition before the first deadline. */
const ASK_AFTER_MS = (EXTENSION_DEFAULTS.baseMs * 2) / 3;
/** Before a request without an answer is repeated. */
const REPEAT_MS = 1_000;
/** An execution advances once in each: cores tell less often while their manager is late, but not this seldom. */
const COUNTED_MS = 1_000;
/** Later than this behind its timers, a process has had too little of its machine. */
const LATE_MS = 1_000;

interface Execution {
  /** Null: until it is told to start, nobody expects anything of it. */
  startedAt: number | null;
  toldAt: number;
  readonly planMs: number;
}

export class LoadProgress {
  /** By slot and execution. */
  readonly #executions = new Map<number, Map<number, Execution>>();
  /** What is planned, by slot and workflow. */
  readonly #planned = new Map<number, ReadonlyMap<string, number>>();
  #advance = 0;
  /** When managers are asked if nothing moves until then. */
  #askAt = NEVER;
  #number = 0;
  /** Somebody has answered the last request. */
  #isAnswered = false;
  /** Since the last request. */
  #hasMoved = true;
  #lateAt = Number.NEGATIVE_INFINITY;

  /** Counted, not kept: a core may be told to prepare the same execution again. */
  get #running(): number {
    let running = 0;
    for (const of of this.#executions.values())
      for (const { startedAt } of of.values()) if (startedAt !== null) running++;
    return running;
  }

  get report(): WorkReport {
    return { running: this.#running, advance: this.#advance };
  }

  /** Infinite while it has nothing to ask. */
  get askAt(): number {
    return this.#running === 0 ? NEVER : this.#askAt;
  }

  onCommand(slot: number, command: RelayedCommand, now: Millis): void {
    if (command.kind === "prepare") {
      const planMs = this.#planned.get(slot)?.get(command.workflow) ?? 0;
      const of = this.#executions.get(slot) ?? new Map<number, Execution>();
      this.#executions.set(slot, of.set(command.execution, { startedAt: null, toldAt: 0, planMs }));
    } else if (command.kind === "start") {
      const execution = this.#executions.get(slot)?.get(command.execution);
      if (execution === undefined || execution.startedAt !== null) return;
      execution.startedAt = now - command.planMs;
      execution.toldAt = now;
      this.#move(now);
    }
  }

  onEvent(slot: number, event: CoreEvent, now: Millis): void {
    if (event.kind === "loaded")
      this.#planned.set(slot, new Map(event.manifests.map((one) => [one.name, planMsOf(one)])));
    else if (event.kind === "frame") {
      const told = this.#executions.get(slot)?.get(event.execution);
      if (told === undefined) return;
      const isSame = Math.floor(told.toldAt / COUNTED_MS) === Math.floor(now / COUNTED_MS);
      told.toldAt = now;
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

  /** It comes so late to its timers. */
  onLate(lateMs: number, now: Millis): void {
    if (lateMs >= LATE_MS) this.#lateAt = now;
  }

  #move(now: number, advance = 1): void {
    this.#advance += advance;
    this.#hasMoved = true;
    this.#askAt = now + ASK_AFTER_MS;
  }

  /** The next request, or the same once more where nobody has answered it. */
  ask(now: Millis): ExtensionRequest {
    if (this.#isAnswered || this.#hasMoved) this.#number++;
    this.#isAnswered = false;
    this.#hasMoved = false;
    this.#askAt = now + REPEAT_MS;
    const passed = [...this.#executions.values()].flatMap((of) =>
      [...of.values()].flatMap(({ planMs, startedAt, toldAt }) =>
        startedAt === null ? [] : [{ planMs, passedMs: Math.min(planMs, toldAt - startedAt) }],
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
   * Managers answer each for itself: it asks again before the first of what they granted ends. Who was denied has
   * nothing new to say until something moves.
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
