/** Messages between a node and the process of one execution at a time, over Node's pipe. */

import type { Backoff } from "../../core/queue/retry.ts";
import type { TaskFailure } from "../api/types.ts";
import type { DependencyResults, MissingResults } from "../worker/dependencies.ts";

export interface RunCommand {
  readonly kind: "run";
  readonly executor: string;
  readonly input: unknown;
  readonly taskId: string;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly dependencies: DependencyResults;
  readonly dependenciesMissing: MissingResults;
}

export type ChildCommand =
  | RunCommand
  | { readonly kind: "load"; readonly module: string; readonly source: string }
  | { readonly kind: "abort"; readonly reason: string }
  | { readonly kind: "answer"; readonly call: number; readonly value: unknown }
  | { readonly kind: "refusal"; readonly call: number; readonly message: string };

/** Calls that only the node can make for an execution: files and earlier progress go through the leader. */
export interface ChildCall {
  readonly kind: "call";
  readonly call: number;
  readonly method: "file" | "attach" | "history";
  readonly parameters: readonly unknown[];
}

/** An executor of the module, as far as the node must know it. */
export interface LoadedExecutor {
  readonly name: string;
  readonly backoff: Backoff | undefined;
}

export type ChildEvent =
  | ChildCall
  | { readonly kind: "loaded"; readonly executors: readonly LoadedExecutor[] }
  | { readonly kind: "unloadable"; readonly message: string }
  | { readonly kind: "log"; readonly text: string }
  | { readonly kind: "progress"; readonly value: unknown }
  /**
   * `result` is JSON text. `spoiled`: code or programs of the execution may still be running, so the process is not
   * reused.
   */
  | { readonly kind: "completed"; readonly result: string; readonly spoiled: boolean }
  | { readonly kind: "failed"; readonly failure: TaskFailure; readonly spoiled: boolean };
