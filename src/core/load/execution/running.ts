/** A workflow on its way over its cores; see `phases.ts`. */

import type { CoreCommand } from "../job/core-messages.ts";
import type { ExecutionOutcome, JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { Finished } from "./phase-types.ts";

export type Dispatch = Extract<JobEffect, { kind: "dispatch" }>;

/** One core's part of a workflow. */
interface RunningShare {
  readonly index: number;
  /** Of the attempt; 0 before it is placed. */
  readonly execution: number;
}

export interface Running {
  readonly manifest: WorkflowManifest;
  readonly dispatch: Dispatch;
  /** By the core that has it now. */
  readonly cores: Map<number, RunningShare>;
  /** Shares that are kept for another core, by the lost one: which share, and whom it is dealt to. */
  readonly vacant: Map<number, { readonly index: number; to: number | null }>;
  readonly preparing: Set<number>;
  readonly unfinished: Set<number>;
  /** Those of them that say they have, which is only not agreed yet: that may take as long as a majority is away. */
  readonly over: Set<number>;
  readonly outcomes: Map<number, Finished>;
  setup: unknown;
  /** The core that runs set-up or tear-down for all. */
  aside: number | undefined;
  /** When that began. */
  asideAt: number;
  /** It is over, and only not agreed yet: that may take as long as a majority is away. */
  asideOver: boolean;
  /** The run was stopped while it was being set up. */
  stopped: boolean;
  /** Its cores were told to end their load. */
  ending: boolean;
  /** The load that a search is at; null while it is at its first. */
  level: number | null;
  /** When its load began, for whoever joins later: by the driver's clock, pauses left out. */
  startedAt: number;
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

/** Of cores that are lost already, nothing is left or (`awaited`) the share is kept. */
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

/** The limit of a set-up or tear-down counts from when it begins. */
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
 * Whether a share whose core is lost can go on elsewhere: what it has to do follows from the time, or from
 * what all shares take from. How far each user of a fixed number of iterations was, nobody knows.
 */
export function isDealtAgain({ manifest }: Running): boolean {
  const { kind } = manifest.load;
  return manifest.isTest && kind !== "perUser" && kind !== "once";
}

/** What it does for all users of a core from now on; undefined for a core that has none of it. */
export function executionOf({ cores }: Running, core: number): number | undefined {
  return cores.get(core)?.execution;
}

/** Its cores, and those that may still join it. */
export function coresLeft({ cores, vacant }: Running): number[] {
  return [...cores.keys(), ...[...vacant].map(([instead, { to }]) => to ?? instead)];
}

/** All that are on their way, by name. */
export class RunningWorkflows {
  readonly #workflows = new Map<string, Running>();
  /** By core and execution: workflows that are over. Their figures may come once more, to a new driver. */
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

  /** The workflow that an execution on a core was of, when it is over. */
  endedOf(core: number, execution: number): string | undefined {
    return this.#ended.get(`${core} ${execution}`);
  }

  /** The workflow that an execution on a core is of. */
  nameOf(core: number, execution: number): string | undefined {
    for (const [name, running] of this.#workflows)
      if (running.phase !== "placing" && executionOf(running, core) === execution) return name;
    return undefined;
  }

  /** Cores that should speak ten times a second: they make load. */
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

  /** Whether a core ran nothing but set-ups that the stop of the run ended: they measure nothing. */
  hasOnlyStoppedSetUps(core: number): boolean {
    const on = [...this.#workflows.values()].filter(({ cores }) => cores.has(core));
    return on.length > 0 && on.every((one) => one.stopped && one.aside === core);
  }

  #cores(which: (running: Running) => boolean): number[] {
    return [...this.#workflows.values()].filter(which).flatMap(busyCores);
  }

  /**
   * Everything again that the cores were told and may not have heard: whoever carries it drops what a core
   * has had. For a driver that took the steps of another one again.
   */
  repeat(now: number, steered: Steered): readonly Told[] {
    return [...this.#workflows.values()].flatMap((running) => {
      // A set-up or tear-down that its core hears of only now has its whole time.
      if (Number.isFinite(running.asideAt)) running.asideAt = now;
      return toldCommands(running, steered);
    });
  }
}

/** The cores that it waits for. */
function busyCores({ aside, over, phase, preparing, unfinished }: Running): number[] {
  if (phase === "running") return [...unfinished].filter((core) => !over.has(core));
  if (phase === "preparing") return [...preparing];
  return aside === undefined ? [] : [aside];
}

/** Its set-up or tear-down did not even end at its limit. */
function isStuck(running: Running, now: number): boolean {
  const { aside, asideAt, asideOver, manifest, phase } = running;
  if (aside === undefined || asideOver) return false;
  if (phase !== "setup" && phase !== "teardown") return false;
  const limitMs = phase === "setup" ? manifest.setupMsMax : manifest.teardownMsMax;
  return now - asideAt > limitMs + LIMIT_SLACK_MS;
}

/** What a core that makes load has to hear beside its start. */
export type Steered = (running: Running, execution: number) => readonly CoreCommand[];

export interface Told {
  readonly core: number;
  readonly command: CoreCommand;
}

/** To each core that is left, its share. */
export function prepareCommands(running: Running): Told[] {
  return [...running.cores.keys()].map((core) => prepareCommand(running, core));
}

export function prepareCommand({ cores, dispatch, manifest }: Running, core: number): Told {
  const { context, users, workflow } = dispatch;
  const { load, part } = manifest;
  const { execution = 0, index = 0 } = cores.get(core) ?? {};
  const ofPlan = part === undefined ? {} : { part: { ...part, load } };
  const share = { index, count: dispatch.cores.length, users, ...ofPlan };
  return { core, command: { kind: "prepare", execution, workflow, share, context } };
}

/** To every core that makes load. */
export function loadingCommands(
  { cores, preparing }: Running,
  command: (execution: number) => CoreCommand,
): Told[] {
  return [...cores]
    .filter(([core]) => !preparing.has(core))
    .map(([core, { execution }]) => ({ core, command: command(execution) }));
}

/** What begins the load on a core, and how it is steered. `planMs`: of the plan that has passed. */
export function startCommands(
  running: Running,
  core: number,
  steered: Steered,
  planMs: number,
): Told[] {
  const execution = executionOf(running, core) ?? 0;
  const start = { kind: "start", execution, setup: running.setup, planMs } as const;
  return [start, ...steered(running, execution)].map((command) => ({ core, command }));
}

/** All that its cores were told in this phase and those before. */
function toldCommands(running: Running, steered: Steered): Told[] {
  const { aside, asideAt, cores, phase, preparing, setup, stopped } = running;
  if (phase === "placing" || phase === "reporting") return [];
  const told = prepareCommands(running);
  const begun = aside !== undefined && Number.isFinite(asideAt);
  const execution = (aside === undefined ? undefined : executionOf(running, aside)) ?? 0;
  if (phase === "setup" && begun) {
    told.push({ core: aside, command: { kind: "setup", execution } });
    told.push({ core: aside, command: { kind: "askAgain", execution } });
    if (stopped) told.push({ core: aside, command: { kind: "stop", execution } });
  }
  if (phase !== "running" && phase !== "teardown") return told;
  for (const [core, share] of cores) {
    // Who has joined says once more that it is prepared, and then hears when to begin.
    if (!preparing.has(core)) told.push(...startCommands(running, core, steered, 0));
    told.push({ core, command: { kind: "askAgain", execution: share.execution } });
  }
  if (phase === "teardown" && begun)
    told.push({ core: aside, command: { kind: "teardown", execution, setup } });
  return told;
}
