/** A workflow on its way over its cores; see `phases.ts`. */

import type { CoreEvent } from "../job/core-messages.ts";
import type { JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";

export type Finished = Extract<CoreEvent, { kind: "finished" }>;
export type Dispatch = Extract<JobEffect, { kind: "dispatch" }>;

export interface Running {
  readonly manifest: WorkflowManifest;
  readonly dispatch: Dispatch;
  /** Of the attempt; 0 before it is placed. */
  execution: number;
  readonly cores: Set<number>;
  readonly preparing: Set<number>;
  readonly unfinished: Set<number>;
  readonly outcomes: Map<number, Finished>;
  setup: unknown;
  /** The core that runs set-up or tear-down for all. */
  aside: number | undefined;
  /** When that began. */
  asideAt: number;
  /** The run was stopped while it was being set up. */
  stopped: boolean;
  /** "held": set up while the run was paused, to start when it goes on. */
  phase: "placing" | "preparing" | "setup" | "held" | "running" | "teardown";
  failed: boolean;
}

export function newRunning(manifest: WorkflowManifest, dispatch: Dispatch): Running {
  const { cores } = dispatch;
  return {
    manifest,
    dispatch,
    execution: 0,
    cores: new Set(cores),
    preparing: new Set(cores),
    unfinished: new Set(cores),
    outcomes: new Map(),
    setup: undefined,
    aside: undefined,
    asideAt: 0,
    stopped: false,
    phase: "placing",
    failed: false,
  };
}
