/**
 * Acknowledgement windows: a dispatched workflow is confirmed by any word from its worker within a window
 * of time, so that nobody ever waits for a loaded worker. (ACKW-1..7)
 *
 *     start ──> AWAITING_ACK ──progress, completion, error──> CONFIRMED
 *                    │ elapsed                                    ^
 *                    v                                            │ any word
 *              WINDOW_EXPIRED ──healthy, fewer than 3──> EXTEND_WINDOW
 *                    │ unhealthy, or 3 extensions
 *                    v
 *               RESCHEDULE     first a new attempt, then a cancel to the old worker, then the new dispatch
 *
 * The health check runs outside; when its answer comes, the state is looked at again, and a window that
 * was confirmed or removed meanwhile is left alone. Words of an older attempt are no words of this one.
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { JobId } from "../../ledger/job/job-id.ts";

export interface AckWindowConfig {
  /** Milliseconds a dispatched workflow has to be confirmed. */
  readonly initialWindowMs: number;
  /** How often a window is extended while its worker is healthy. */
  readonly extensionsMax: number;
  /** Milliseconds of one extension. */
  readonly extensionMs: number;
  /** Ask after the worker's health when a window ends; without it the workflow is given out again at once. */
  readonly healthCheckOnExpire: boolean;
  /** A health check without an answer after this many milliseconds counts as unhealthy. */
  readonly healthCheckTimeoutMs: number;
  /** Windows that are open at once. */
  readonly windowsMax: number;
}

export const ACK_WINDOW_DEFAULTS: AckWindowConfig = {
  initialWindowMs: 5_000,
  extensionsMax: 3,
  extensionMs: 5_000,
  healthCheckOnExpire: true,
  healthCheckTimeoutMs: 1_000,
  windowsMax: 200_000,
};

function checkAckWindowConfig({ initialWindowMs, extensionMs }: AckWindowConfig): void {
  assert(initialWindowMs > 0 && extensionMs > 0, "an ack window has a length");
}

/** DISPATCHED lasts no time here: the timer starts in the same step. */
export type AckWindowState =
  | "AWAITING_ACK"
  | "CONFIRMED"
  | "WINDOW_EXPIRED"
  | "EXTEND_WINDOW"
  | "RESCHEDULE";

export interface AckWindow {
  readonly workflowId: string;
  readonly jobId: JobId;
  readonly workerId: NodeId;
  /** The dispatch's number; results of lower ones are refused. */
  readonly attempt: number;
  readonly state: AckWindowState;
  readonly createdAt: number;
  readonly lastCommunication: number | null;
  readonly extensions: number;
}

export type Communication = "progress" | "completion" | "error";

export type AckWindowInput =
  | {
      readonly kind: "start";
      readonly workflowId: string;
      readonly jobId: JobId;
      readonly workerId: NodeId;
      readonly attempt: number;
    }
  | {
      readonly kind: "communication";
      readonly workflowId: string;
      readonly attempt: number;
      readonly what: Communication;
    }
  /** The answer to `checkHealth`, with its number. */
  | {
      readonly kind: "health";
      readonly workflowId: string;
      readonly check: number;
      readonly healthy: boolean;
    }
  | { readonly kind: "complete"; readonly workflowId: string }
  | { readonly kind: "jobEnded"; readonly jobId: JobId }
  | { readonly kind: "tick" };

export type AckWindowEffect =
  | { readonly kind: "confirmed"; readonly workflowId: string; readonly what: Communication }
  /** A word of an attempt that was given up: its results must not count. */
  | { readonly kind: "stale"; readonly workflowId: string; readonly attempt: number }
  | {
      readonly kind: "checkHealth";
      readonly workflowId: string;
      readonly workerId: NodeId;
      readonly check: number;
    }
  /** From here on only this attempt's results are accepted. Always before the next two. (ACKW-6) */
  | { readonly kind: "advanceAttempt"; readonly workflowId: string; readonly attempt: number }
  /** Best effort: the old worker may never hear it. */
  | { readonly kind: "cancelWorker"; readonly workflowId: string; readonly workerId: NodeId }
  | {
      readonly kind: "reschedule";
      readonly workflowId: string;
      readonly jobId: JobId;
      readonly attempt: number;
      readonly why: string;
    }
  | { readonly kind: "refused"; readonly workflowId: string; readonly why: string };

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };
/** `check` is the number of the health check whose answer is awaited; null when none is. */
type Held = Mutable<AckWindow> & { check: number | null };

export class AckWindows {
  readonly #config: AckWindowConfig;
  readonly #windows = new Map<string, Held>();
  readonly #byJob = new Map<JobId, Set<string>>();
  readonly #timers = new Deadlines<string>();
  #checks = 0;

  constructor(config: AckWindowConfig) {
    checkAckWindowConfig(config);
    this.#config = config;
  }

  get sizes(): { readonly windows: number; readonly timers: number; readonly jobs: number } {
    return { windows: this.#windows.size, timers: this.#timers.size, jobs: this.#byJob.size };
  }

  windowOf(workflowId: string): AckWindow | null {
    const held = this.#windows.get(workflowId);
    if (held === undefined) return null;
    const { check: _, ...window } = held;
    return window;
  }

  workflowsToReschedule(): readonly AckWindow[] {
    const waiting = [...this.#windows.values()].filter(({ state }) => state === "RESCHEDULE");
    return waiting.map(({ check: _, ...window }) => window);
  }

  nextDeadline(): Millis | null {
    return this.#timers.next() as Millis | null;
  }

  step(input: AckWindowInput, now: Millis): readonly AckWindowEffect[] {
    switch (input.kind) {
      case "start":
        return this.#onStart(input, now);
      case "communication":
        return this.#onCommunication(input, now);
      case "health":
        return this.#onHealth(input, now);
      case "complete":
        this.#remove(input.workflowId);
        return [];
      case "jobEnded":
        for (const workflowId of this.#byJob.get(input.jobId) ?? []) this.#remove(workflowId);
        return [];
      case "tick":
        return this.#timers.takeDue(now).flatMap((workflowId) => this.#onElapsed(workflowId, now));
    }
  }

  #onStart(
    input: Extract<AckWindowInput, { kind: "start" }>,
    now: Millis,
  ): readonly AckWindowEffect[] {
    const { attempt, jobId, workerId, workflowId } = input;
    const known = this.#windows.get(workflowId);
    if (known !== undefined && attempt <= known.attempt) {
      return [{ kind: "refused", workflowId, why: `attempt ${attempt} is not a new one` }];
    }
    if (known === undefined && this.#windows.size >= this.#config.windowsMax) {
      return [{ kind: "refused", workflowId, why: "too many windows are open" }];
    }
    this.#remove(workflowId);
    this.#windows.set(workflowId, {
      workflowId,
      jobId,
      workerId,
      attempt,
      state: "AWAITING_ACK",
      createdAt: now,
      lastCommunication: null,
      extensions: 0,
      check: null,
    });
    const ofJob = this.#byJob.get(jobId) ?? new Set();
    this.#byJob.set(jobId, ofJob.add(workflowId));
    this.#timers.set(workflowId, now + this.#config.initialWindowMs);
    return [];
  }

  #onCommunication(
    input: Extract<AckWindowInput, { kind: "communication" }>,
    now: Millis,
  ): readonly AckWindowEffect[] {
    const { attempt, what, workflowId } = input;
    const held = this.#windows.get(workflowId);
    // ACKW-2: what is no longer watched has finished; the worker may go on.
    if (held === undefined) return [{ kind: "confirmed", workflowId, what }];
    if (attempt !== held.attempt || held.state === "RESCHEDULE") {
      return [{ kind: "stale", workflowId, attempt }];
    }
    held.lastCommunication = now;
    if (held.state === "CONFIRMED") return [];
    held.state = "CONFIRMED";
    held.check = null;
    this.#timers.delete(workflowId);
    return [{ kind: "confirmed", workflowId, what }];
  }

  /** A window ran out, or the health check that followed did. */
  #onElapsed(workflowId: string, now: Millis): readonly AckWindowEffect[] {
    const held = this.#windows.get(workflowId);
    if (held === undefined) return [];
    if (held.check !== null) return this.#reschedule(held, "the health check was not answered");
    held.state = "WINDOW_EXPIRED";
    const { extensionsMax, healthCheckOnExpire, healthCheckTimeoutMs } = this.#config;
    if (!healthCheckOnExpire) return this.#reschedule(held, "no word within the window");
    if (held.extensions >= extensionsMax) {
      return this.#reschedule(held, `no word after ${held.extensions} extensions`);
    }
    held.check = ++this.#checks;
    this.#timers.set(workflowId, now + healthCheckTimeoutMs);
    const { check, workerId } = held;
    return [{ kind: "checkHealth", workflowId, workerId, check }];
  }

  #onHealth(
    input: Extract<AckWindowInput, { kind: "health" }>,
    now: Millis,
  ): readonly AckWindowEffect[] {
    const held = this.#windows.get(input.workflowId);
    // ACKW-3: confirmed, removed or replaced while the check was out.
    if (held === undefined || held.check !== input.check) return [];
    held.check = null;
    if (!input.healthy) return this.#reschedule(held, "the worker is unhealthy");
    held.state = "EXTEND_WINDOW";
    held.extensions++;
    this.#timers.set(held.workflowId, now + this.#config.extensionMs);
    return [];
  }

  #reschedule(held: Held, why: string): readonly AckWindowEffect[] {
    const { jobId, workerId, workflowId } = held;
    held.state = "RESCHEDULE";
    held.check = null;
    this.#timers.delete(workflowId);
    const attempt = held.attempt + 1;
    return [
      { kind: "advanceAttempt", workflowId, attempt },
      { kind: "cancelWorker", workflowId, workerId },
      { kind: "reschedule", workflowId, jobId, attempt, why },
    ];
  }

  #remove(workflowId: string): void {
    const held = this.#windows.get(workflowId);
    if (held === undefined) return;
    this.#windows.delete(workflowId);
    this.#timers.delete(workflowId);
    const ofJob = this.#byJob.get(held.jobId);
    ofJob?.delete(workflowId);
    if (ofJob?.size === 0) this.#byJob.delete(held.jobId);
  }
}
