/** A running workflow over its cores; see `phases.ts`. */

import type { CoreCommand } from "../job/core-messages.ts";
import type { ExecutionOutcome, JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { Finished } from "./phase-types.ts";

export type Dispatch = Extract<JobEffect, { kind: "dispatch" }>;

/** One core's part of a workflow. */
interface RunningShare {
  readonly index: number;
  /** Number of the attempt; 0 before it is placed. */
  readonly execution: number;
}

export interface Running {
  readonly manifest: WorkflowManifest;
  readonly dispatch: Dispatch;
  /** By the core that has it now. */
  readonly cores: Map<number, RunningShare>;
  /** Shares kept for another core, by the lost one: which share, and the core it is assigned to. */
  readonly vacant: Map<number, { readonly index: number; to: number | null }>;
  readonly preparing: Set<number>;
  readonly unfinished: Set<number>;
  /**
   * Cores that report to be finished, while the agreement is pending: it may take as long as the majority is
   * unavailable.
   */
  readonly over: Set<number>;
  readonly outcomes: Map<number, Finished>;
  setup: unknown;
  /** The core that runs setup or teardown for all. */
  aside: number | undefined;
  /** When that began. */
  asideAt: number;
  /** Setup or teardown is over, while the agreement is pending: it may take as long as the majority is unavailable. */
  asideOver: boolean;
  /** The run was stopped during the setup. */
  stopped: boolean;
  /** True once the cores were ordered to end their load. */
  ending: boolean;
  /** Current load of a search; null at its first load. */
  level: number | null;
  /** When its load began, for cores that join later: by the driver's clock, excluding pauses. */
  startedAt: number;
  /** Why it fails although its teardown succeeds. */
  failure: string | null;
  /**
   * "held": set up, and waiting for the end of a pause or for other datacenters; "ended": its load is over here, and
   * perhaps not elsewhere.
   */
  phase:
    | ("placing" | "preparing" | "setup" | "held")
    | ("running" | "ended" | "teardown" | "reporting");
}

/** Grace period of a core beyond a limit to report its end. */
const LIMIT_SLACK_MS = 2_000;

/** Lost cores keep their share only if they are `awaited`. */
export function newRunning(
  manifest: WorkflowManifest,
  dispatch: Dispatch,
  lost: ReadonlyMap<number, { readonly awaited: boolean }>,
): Running {
  const shares = dispatch.cores.map((core, index) => ({ core, index, execution: 0 }));
  const cores = shares.filter(({ core }) => !lost.has(core));
  const vacant = shares.filter(({ core }) => lost.get(core)?.awaited === true);
  return {
    manifest,
    dispatch,
    cores: new Map(cores.map(({ core, ...share }) => [core, share])),
    vacant: new Map(vacant.map(({ core, index }) => [core, { index, to: null }])),
    preparing: new Set(cores.map(({ core }) => core)),
    unfinished: new Set(cores.map(({ core }) => core)),
    over: new Set(),
    outcomes: new Map(),
    setup: undefined,
    aside: undefined,
    asideAt: 0,
    asideOver: false,
    stopped: false,
    ending: false,
    level: null,
    failure: null,
    startedAt: 0,
    phase: "placing",
  };
}

/** The limit of a setup or teardown counts from its start. */
export function askAside(running: Running, core: number): void {
  running.aside = core;
  running.asideAt = Number.POSITIVE_INFINITY;
  running.asideOver = false;
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

/**
 * Whether the share of a lost core can be reassigned: its remaining work must follow from the time, or from a lease
 * shared by all. The progress of each user through a fixed number of iterations is unknown.
 */
export function isDealtAgain({ manifest }: Running): boolean {
  const { kind } = manifest.load;
  return manifest.isTest && kind !== "perUser" && kind !== "once";
}

/** Execution of the workflow on a core; undefined for a core without a share. */
export function executionOf({ cores }: Running, core: number): number | undefined {
  return cores.get(core)?.execution;
}

/** Cores with a share, and those that may still join. */
export function coresLeft({ cores, vacant }: Running): number[] {
  return [...cores.keys(), ...[...vacant].map(([instead, { to }]) => to ?? instead)];
}

/** All running workflows, by name. */
export class RunningWorkflows {
  readonly #workflows = new Map<string, Running>();
  /** Finished workflows by core and execution. Their metrics may arrive once more, at a new driver. */
  readonly #ended = new Map<string, string>();

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
    for (const [core, { execution }] of this.#workflows.get(name)?.cores ?? [])
      this.#ended.set(`${core} ${execution}`, name);
    this.#workflows.delete(name);
  }

  /** The finished workflow of an execution on a core. */
  endedOf(core: number, execution: number): string | undefined {
    return this.#ended.get(`${core} ${execution}`);
  }

  /** The running workflow of an execution on a core. */
  nameOf(core: number, execution: number): string | undefined {
    for (const [name, running] of this.#workflows)
      if (running.phase !== "placing" && executionOf(running, core) === execution) return name;
    return undefined;
  }

  /** Cores that generate load and should report ten times a second. */
  loadingCores(): number[] {
    return this.#cores(({ phase }) => phase === "running");
  }

  /** Cores that were ordered to end when the run was stopped; a teardown has its own limit. */
  stoppedCores(): number[] {
    return this.#cores(({ phase }) => phase !== "teardown");
  }

  /** Cores whose setup or teardown exceeded even its limit: its code never awaits. */
  stuckCores(now: number): number[] {
    return this.#cores((running) => isStuck(running, now));
  }

  /** Whether a core ran only setups that the stop of the run ended: they measure nothing. */
  hasOnlyStoppedSetUps(core: number): boolean {
    const on = [...this.#workflows.values()].filter(({ cores }) => cores.has(core));
    return on.length > 0 && on.every((one) => one.stopped && one.aside === core);
  }

  #cores(which: (running: Running) => boolean): number[] {
    return [...this.#workflows.values()].filter(which).flatMap(busyCores);
  }

  /**
   * Repeats all commands that the cores may not have received; the transport drops duplicates. For a driver that
   * replayed the steps of another one.
   */
  repeat(now: number, steered: Steered): readonly CoreOrder[] {
    return [...this.#workflows.values()].flatMap((running) => {
      // A setup or teardown that its core receives only now has its whole time.
      if (Number.isFinite(running.asideAt)) running.asideAt = now;
      return allCommands(running, steered);
    });
  }
}

/** The cores that it waits for. */
function busyCores({ aside, over, phase, preparing, unfinished }: Running): number[] {
  if (phase === "running") return [...unfinished].filter((core) => !over.has(core));
  if (phase === "preparing") return [...preparing];
  return aside === undefined ? [] : [aside];
}

/** True when setup or teardown exceeded even its limit. */
function isStuck(running: Running, now: number): boolean {
  const { aside, asideAt, asideOver, manifest, phase } = running;
  if (aside === undefined || asideOver) return false;
  if (phase !== "setup" && phase !== "teardown") return false;
  const limitMs = phase === "setup" ? manifest.setupMsMax : manifest.teardownMsMax;
  return now - asideAt > limitMs + LIMIT_SLACK_MS;
}

/** Controls for a core that generates load, beside its start. */
export type Steered = (running: Running, execution: number) => readonly CoreCommand[];

export interface CoreOrder {
  readonly core: number;
  readonly command: CoreCommand;
}

/** Prepares each remaining core with its share. */
export function prepareCommands(running: Running): CoreOrder[] {
  return [...running.cores.keys()].map((core) => prepareCommand(running, core));
}

export function prepareCommand({ cores, dispatch, manifest }: Running, core: number): CoreOrder {
  const { context, users, workflow } = dispatch;
  const { load, part } = manifest;
  const { execution = 0, index = 0 } = cores.get(core) ?? {};
  const ofPlan = part === undefined ? {} : { part: { ...part, load } };
  const share = { index, count: dispatch.cores.length, users, ...ofPlan };
  return { core, command: { kind: "prepare", execution, workflow, share, context } };
}

/** Sends a command to every core that generates load. */
export function loadingCommands(
  { cores, preparing }: Running,
  command: (execution: number) => CoreCommand,
): CoreOrder[] {
  return [...cores]
    .filter(([core]) => !preparing.has(core))
    .map(([core, { execution }]) => ({ core, command: command(execution) }));
}

/** Starts the load on a core with its controls. `planMs`: elapsed time of the plan. */
export function startCommands(
  running: Running,
  core: number,
  steered: Steered,
  planMs: number,
): CoreOrder[] {
  const execution = executionOf(running, core) ?? 0;
  const start = { kind: "start", execution, setup: running.setup, planMs } as const;
  return [start, ...steered(running, execution)].map((command) => ({ core, command }));
}

/** All commands of this phase and those before. */
function allCommands(running: Running, steered: Steered): CoreOrder[] {
  const { aside, asideAt, cores, phase, preparing, setup, stopped } = running;
  if (phase === "placing" || phase === "reporting") return [];
  const commands = prepareCommands(running);
  const begun = aside !== undefined && Number.isFinite(asideAt);
  const execution = (aside === undefined ? undefined : executionOf(running, aside)) ?? 0;
  if (phase === "setup" && begun) {
    commands.push({ core: aside, command: { kind: "setup", execution } });
    commands.push({ core: aside, command: { kind: "askAgain", execution } });
    if (stopped) commands.push({ core: aside, command: { kind: "stop", execution } });
  }
  if (phase !== "running" && phase !== "teardown") return commands;
  for (const [core, share] of cores) {
    // A core that joined reports again that it is prepared, and is then started.
    if (!preparing.has(core)) commands.push(...startCommands(running, core, steered, 0));
    commands.push({ core, command: { kind: "askAgain", execution: share.execution } });
  }
  if (phase === "teardown" && begun)
    commands.push({ core: aside, command: { kind: "teardown", execution, setup } });
  return commands;
}
