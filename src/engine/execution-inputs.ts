/** Inputs of an execution, and the callbacks it reports to. */

import type { Problem } from "../core/load/job/core-messages.ts";
import type { CountedNote } from "../core/load/job/counted-notes.ts";
import type { Fault } from "../core/load/job/faults.ts";
import type { LoadPlan, Share } from "../core/load/plan/load.ts";
import type { CompiledWorkflow } from "./compiled.ts";
import type { LoadDriver } from "./drivers.ts";
import type { FeedSupply } from "./feeds.ts";
import type { CoreLag } from "./lag.ts";
import type { LeaseRequester } from "./leases.ts";
import type { VirtualUser } from "./user.ts";

export interface ExecutionEnd {
  readonly provided: Readonly<Record<string, unknown>>;
  readonly notes: readonly string[];
  readonly counts: readonly CountedNote[];
  readonly faults: readonly Fault[];
}

export interface ExecutionHost extends LeaseRequester {
  /** Reports a mistake in user code. */
  complain(line: string): void;
  /** Aborts the whole run at the request of user code. */
  abort(reason: string): void;
  frame(): void;
  finished(end: ExecutionEnd): void;
  /** A workflow that measures nothing threw: its dependants must not run. */
  failed(problem: Problem): void;
}

export interface ExecutionInputs {
  readonly workflow: CompiledWorkflow;
  /** The plan after overrides. */
  readonly plan: LoadPlan;
  readonly warmupMs: number;
  readonly gracefulStopMs: number;
  readonly share: Share;
  readonly core: number;
  readonly used: Readonly<Record<string, unknown>>;
  readonly feeds: FeedSupply;
  readonly lag: CoreLag;
  /** Seed of the run. */
  readonly seed: string;
  /** Starts the iterations instead of the plan alone: the mix that it is a part of. */
  readonly driver?: LoadDriver<VirtualUser>;
}
