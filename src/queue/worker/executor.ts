/** Interface of user code: a function per kind of task. */

import type { Backoff } from "../../core/queue/retry.ts";
import type { ExecutionHistory } from "../api/types.ts";

export interface ExecutionContext {
  readonly taskId: string;
  /** Counted from 1. */
  readonly attempt: number;
  /** The same for every attempt of this task: pass it on to systems that deduplicate. */
  readonly idempotencyKey: string;
  /** Results of its dependencies, by their names in its graph, or else by id. */
  readonly dependencies: Readonly<Record<string, unknown>>;
  /** Missing results, and why: too large, or its task did not succeed. Reading one of them fails. */
  readonly dependenciesMissing: Readonly<Record<string, string>>;
  /** Aborted when the lease is lost, the task is cancelled or the node stops. */
  readonly signal: AbortSignal;
  /** Logs a line for followers of this task. */
  log(message: string): void;
  /** Reports progress, in any form; followers see it live. */
  progress(value: unknown): void;
  /** Returns the history, to continue from there. */
  history(): Promise<ExecutionHistory>;
  /** Returns a file stored for this task, by its SHA-256. */
  file(hash: string): Promise<Buffer>;
  /** Attaches a file to the task, for later download: up to 64 MiB together. */
  attach(name: string, content: Uint8Array | string, mediaType?: string): Promise<void>;
}

/** Results are stored as JSON. A thrown error is retried while attempts are left, unless it says otherwise. */
export interface Executor {
  (input: unknown, context: ExecutionContext): unknown;
  /** Where it runs, if not as user code in the node's event loop. */
  readonly runs?: "isolated" | "built-in";
  /** Backoff of failed tasks, unless they define their own. */
  readonly backoff?: Backoff | undefined;
}

/** A result that is JSON text already. */
export class EncodedResult {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Executors = Readonly<Record<string, Executor>>;

/** Thrown by an executor when a retry cannot help. */
export class NotRetryable extends Error {
  override readonly name = "NotRetryable";
  readonly retryable = false;
}

/** Thrown by an executor to run again later: not a failure, and costs no attempt. */
export class Snooze extends Error {
  override readonly name = "Snooze";
  /** A time, or seconds from now. */
  readonly again: string | number;

  constructor(again: Date | number) {
    if (Number.isNaN(Number(again)) || Number(again) <= 0)
      throw new TypeError("a snooze takes a Date, or a number of seconds above zero");
    const at = typeof again === "number" ? again : again.toISOString();
    super(typeof at === "number" ? `again in ${at} s` : `again at ${at}`);
    this.again = at;
  }
}

/** Types the map of an executors file; returns it unchanged. */
export function defineExecutors<Map extends Executors>(executors: Map): Map {
  return executors;
}
