/** One execution of a task on this node, from its lease to its end. */

import { AsyncLocalStorage } from "node:async_hooks";
import { performance } from "node:perf_hooks";
import { errorText } from "../../core/base/error-text.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import type { Grant, LeaseRef } from "../api/types.ts";
import type { Speaker } from "./note-sender.ts";

export class Execution implements Speaker {
  readonly grant: Grant;
  readonly grantedAt = performance.now();
  startedAt = 0;
  startNoted = false;
  /** The lease is lost: the outcome is not reported. */
  lost = false;
  finished = false;
  /** Lines logged so far. */
  lines = 0;
  #abort: AbortController | undefined;
  #crash: (error: unknown) => void = () => undefined;

  constructor(grant: Grant) {
    this.grant = grant;
  }

  /**
   * Returns the result of the work; fails with an error that its code left behind, or with its time limit, if that is
   * first.
   */
  run(work: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#crash = reject;
      const result = executing.run(this, work);
      if (typeof result !== "object" || result === null || !("then" in result)) resolve(result);
      else Promise.resolve(result).then(resolve, reject);
    });
  }

  /** Ends it after the limit, whether its code listens to the signal or not. */
  limit(timeoutMs: number | null): Timer | undefined {
    if (timeoutMs === null) return undefined;
    return startTimer(timeoutMs, () => {
      const words = `it took longer than its limit of ${timeoutMs} ms`;
      this.#crash(new Error(words));
      this.abort(words);
    });
  }

  crash(error: unknown): void {
    const words = `the executor left an error that nobody caught: ${errorText(error)}`;
    this.#crash(new Error(words, { cause: error }));
    this.abort(words);
  }

  get lease(): LeaseRef {
    return { task_id: this.grant.task_id, lease_token: this.grant.lease_token };
  }

  get over(): boolean {
    return this.finished || this.lost;
  }

  /** Created on first use: most short tasks never need it. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  abort(reason: string): void {
    this.#abort ??= new AbortController();
    this.#abort.abort(new Error(reason));
  }
}

/** Execution of the running code, tracked over its promises and timers. */
const executing = new AsyncLocalStorage<Execution>();

/**
 * Attributes an uncaught error: returns true when an executor caused it, and then only its task fails. Code outside of
 * executions is not handled here.
 */
export function blameExecution(error: unknown): boolean {
  const execution = executing.getStore();
  execution?.crash(error);
  return execution !== undefined;
}
