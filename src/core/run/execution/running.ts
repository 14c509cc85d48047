/** A workflow on its way over its cores; see `phases.ts`. */

import type { CoreCommand } from "../job/core-messages.ts";
import type { JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { Finished } from "./phase-types.ts";

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
  phase: "placing" | "preparing" | "setup" | "held" | "running" | "teardown" | "reporting";
}

/** What a core may take beyond a limit to say that it is over. */
const LIMIT_SLACK_MS = 2_000;

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
  };
}

/** The workflow that an execution is of. */
export function nameOf(
  workflows: ReadonlyMap<string, Running>,
  execution: number,
): string | undefined {
  for (const [name, running] of workflows)
    if (running.phase !== "placing" && running.execution === execution) return name;
  return undefined;
}

/** The cores that it waits for. */
export function busyCores({ aside, phase, preparing, unfinished }: Running): number[] {
  if (phase === "running") return [...unfinished];
  if (phase === "preparing") return [...preparing];
  return aside === undefined ? [] : [aside];
}

/** Its set-up or tear-down did not even end at its limit. */
export function isStuck({ aside, asideAt, manifest, phase }: Running, now: number): boolean {
  if (aside === undefined || (phase !== "setup" && phase !== "teardown")) return false;
  const limitMs = phase === "setup" ? manifest.setupMsMax : manifest.teardownMsMax;
  return now - asideAt > limitMs + LIMIT_SLACK_MS;
}

export interface Told {
  readonly core: number;
  readonly command: CoreCommand;
}

/** To each core that is left, its share. */
export function prepareCommands({ cores: left, dispatch, execution }: Running): Told[] {
  const { context, cores, users, workflow } = dispatch;
  return cores.flatMap((core, index) => {
    const share = { index, count: cores.length, users };
    const command = { kind: "prepare", execution, workflow, share, context } as const;
    return left.has(core) ? [{ core, command }] : [];
  });
}

/** All that its cores were told in this phase and those before. */
export function toldCommands(running: Running, paused: boolean): Told[] {
  const { aside, asideAt, cores, execution, phase, setup } = running;
  if (phase === "placing" || phase === "reporting") return [];
  const told = prepareCommands(running);
  const begun = aside !== undefined && Number.isFinite(asideAt);
  if (phase === "setup" && begun) told.push({ core: aside, command: { kind: "setup", execution } });
  if (phase !== "running" && phase !== "teardown") return told;
  for (const core of cores) {
    told.push({ core, command: { kind: "start", execution, setup } });
    if (paused) told.push({ core, command: { kind: "pause", execution } });
  }
  if (phase === "teardown" && begun)
    told.push({ core: aside, command: { kind: "teardown", execution, setup } });
  return told;
}
