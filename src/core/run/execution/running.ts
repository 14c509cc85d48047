/** A workflow on its way over its cores; see `phases.ts`. */

import type { CoreCommand } from "../job/core-messages.ts";
import type { ExecutionOutcome, JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { Finished } from "./phase-types.ts";
import type { Steering } from "./steering.ts";

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
  /** Its cores were told to end their load. */
  ending: boolean;
  /** The load that a search is at; null while it is at its first. */
  level: number | null;
  /** Why it fails although it is torn down as it should be. */
  failure: string | null;
  /**
   * "held": set up while the run was paused, to start when it goes on, or when others do; "ended": its load is over
   * here, and may not be elsewhere.
   */
  phase:
    | ("placing" | "preparing" | "setup" | "held")
    | ("running" | "ended" | "teardown" | "reporting");
}

/** What a core may take beyond a limit to say that it is over. */
const LIMIT_SLACK_MS = 2_000;

/** Without the cores that are lost already. */
export function newRunning(
  manifest: WorkflowManifest,
  dispatch: Dispatch,
  lost: ReadonlySet<number>,
): Running {
  const cores = dispatch.cores.filter((core) => !lost.has(core));
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
    ending: false,
    level: null,
    failure: null,
    phase: "placing",
  };
}

/** The limit of a set-up or tear-down counts from when it begins. */
export function askAside(running: Running, core: number): void {
  running.aside = core;
  running.asideAt = Number.POSITIVE_INFINITY;
}

export function isLoadOver({ phase }: Running): boolean {
  return phase === "ended" || phase === "teardown" || phase === "reporting";
}

export function outcomeOf(
  { outcomes }: Running,
  core: number,
  error: string | null,
): ExecutionOutcome {
  const contextUpdates = outcomes.get(core)?.provided ?? {};
  return error === null ? { ok: true, contextUpdates } : { ok: false, error };
}

/** All that are on their way, by name. */
export class RunningWorkflows {
  readonly #workflows = new Map<string, Running>();

  [Symbol.iterator](): IterableIterator<[string, Running]> {
    return this.#workflows.entries();
  }

  get(name: string): Running | undefined {
    return this.#workflows.get(name);
  }

  set(name: string, running: Running): void {
    this.#workflows.set(name, running);
  }

  delete(name: string): void {
    this.#workflows.delete(name);
  }

  /** The workflow that an execution is of. */
  nameOf(execution: number): string | undefined {
    for (const [name, running] of this.#workflows)
      if (running.phase !== "placing" && running.execution === execution) return name;
    return undefined;
  }

  /** Cores that should speak five times a second: they make load. */
  loadingCores(): number[] {
    return this.#cores(({ phase }) => phase === "running");
  }

  /** Cores that were to end what they do when the run was stopped; a tear-down has its own limit. */
  stoppedCores(): number[] {
    return this.#cores(({ phase }) => phase !== "teardown");
  }

  /** Cores whose set-up or tear-down did not even end at its limit: code there never waits. */
  stuckCores(now: number): number[] {
    return this.#cores((running) => isStuck(running, now));
  }

  #cores(which: (running: Running) => boolean): number[] {
    return [...this.#workflows.values()].filter(which).flatMap(busyCores);
  }

  /**
   * Everything again that the cores were told and may not have heard: whoever carries it drops what a core
   * has had. For a driver that took the steps of another one again.
   */
  repeat(now: number, steering: Steering): readonly Told[] {
    return [...this.#workflows.values()].flatMap((running) => {
      // A set-up or tear-down that its core hears of only now has its whole time.
      if (Number.isFinite(running.asideAt)) running.asideAt = now;
      return toldCommands(running, steering);
    });
  }
}

/** The cores that it waits for. */
function busyCores({ aside, phase, preparing, unfinished }: Running): number[] {
  if (phase === "running") return [...unfinished];
  if (phase === "preparing") return [...preparing];
  return aside === undefined ? [] : [aside];
}

/** Its set-up or tear-down did not even end at its limit. */
function isStuck({ aside, asideAt, manifest, phase }: Running, now: number): boolean {
  if (aside === undefined || (phase !== "setup" && phase !== "teardown")) return false;
  const limitMs = phase === "setup" ? manifest.setupMsMax : manifest.teardownMsMax;
  return now - asideAt > limitMs + LIMIT_SLACK_MS;
}

export interface Told {
  readonly core: number;
  readonly command: CoreCommand;
}

/** To each core that is left, its share. */
export function prepareCommands({ cores: left, dispatch, execution, manifest }: Running): Told[] {
  const { context, cores, users, workflow } = dispatch;
  const { load, part } = manifest;
  const ofPlan = part === undefined ? {} : { part: { ...part, load } };
  return cores.flatMap((core, index) => {
    const share = { index, count: cores.length, users, ...ofPlan };
    const command = { kind: "prepare", execution, workflow, share, context } as const;
    return left.has(core) ? [{ core, command }] : [];
  });
}

/** All that its cores were told in this phase and those before. */
function toldCommands(running: Running, steering: Steering): Told[] {
  const { aside, asideAt, cores, execution, phase, setup, stopped } = running;
  if (phase === "placing" || phase === "reporting") return [];
  const told = prepareCommands(running);
  const begun = aside !== undefined && Number.isFinite(asideAt);
  if (phase === "setup" && begun) {
    told.push({ core: aside, command: { kind: "setup", execution } });
    told.push({ core: aside, command: { kind: "askAgain", execution } });
    if (stopped) told.push({ core: aside, command: { kind: "stop", execution } });
  }
  if (phase !== "running" && phase !== "teardown") return told;
  for (const core of cores) {
    told.push({ core, command: { kind: "start", execution, setup } });
    for (const command of steering.commands(running)) told.push({ core, command });
    told.push({ core, command: { kind: "askAgain", execution } });
  }
  if (phase === "teardown" && begun)
    told.push({ core: aside, command: { kind: "teardown", execution, setup } });
  return told;
}
