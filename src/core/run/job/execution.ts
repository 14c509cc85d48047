/**
 * Runs a job on a set of cores: the pure `Job` machine decides what runs where, this file carries it
 * out with messages and tells the machine what came of it. It is a manager with local cores; a
 * cluster's manager will do the same over the network.
 *
 * One workflow's way over its cores:
 *
 *   prepare on all ─▶ setup on one ─▶ start on all ─▶ frames … ─▶ finished by all ─▶ teardown on one
 */

import { assertNever } from "../../base/assert.ts";
import type { Fault } from "../results/workflow-data.ts";
import type { CoreCommand, CoreEvent, CoreVitals, Problem } from "./core-messages.ts";
import type { CountedNote } from "./counted-notes.ts";
import { type ExecutionOutcome, Job, type JobEffect } from "./job.ts";
import { LeaseAllocator } from "./lease-allocator.ts";
import type { WorkflowManifest } from "./manifest.ts";
import { SharedValues } from "./shared-values.ts";

type Finished = Extract<CoreEvent, { kind: "finished" }>;

/** What happens to the workflows and what they measure. */
export interface JobListener {
  /** It is being set up or torn down, or neither any more. */
  workflowBusy(workflow: string, doing: "setting up" | "tearing down" | null): void;
  workflowStarted(workflow: string, cores: readonly number[]): void;
  /** The answer is the number of the frame that is held now. */
  frame(workflow: string, core: number, bytes: Uint8Array, vitals: CoreVitals): number;
  /** A core has sent its last frame. */
  coreFinished(workflow: string, core: number): void;
  workflowFinished(
    workflow: string,
    status: "completed" | "failed" | "interrupted",
    error: string | null,
  ): void;
  workflowSkipped(workflow: string, becauseOf: string | null): void;
  note(text: string): void;
  countedNote(note: CountedNote): void;
  /** A rule was broken beside what is measured; null for the run. */
  fault(workflow: string | null, fault: Fault): void;
}

/** What the run does for its job: carry commands to the cores, and pass on what is for the user. */
interface JobHost {
  send(core: number, command: CoreCommand): void;
  now(): number;
  log(line: string): void;
  /** Code of a workflow asks for the end of the run. */
  abort(workflow: string, reason: string): void;
  /** Of a preparation that failed: whether the user can mend it. */
  problem(problem: Problem): void;
  done(): void;
}

interface Running {
  readonly execution: number;
  readonly manifest: WorkflowManifest;
  readonly cores: Set<number>;
  readonly preparing: Set<number>;
  readonly unfinished: Set<number>;
  readonly outcomes: Map<number, Finished>;
  readonly leases: LeaseAllocator;
  setup: unknown;
  /** The core that runs set-up or tear-down for all. */
  aside: number | undefined;
  /** When that began. */
  asideAt: number;
  /** The run was stopped while it was being set up. */
  stopped: boolean;
  /** "held": set up while the run was paused, to start when it goes on. */
  phase: "preparing" | "setup" | "held" | "running" | "teardown";
  failed: boolean;
}

/** What a core may take beyond a limit to say that it is over. */
const LIMIT_SLACK_MS = 2_000;

export class JobRunner {
  readonly #job: Job;
  readonly #manifests: ReadonlyMap<string, WorkflowManifest>;
  readonly #host: JobHost;
  readonly #listener: JobListener;
  readonly #running = new Map<string, Running>();
  readonly #shared = new SharedValues();
  #executions = 0;
  /** By hand; what begins later begins paused, and with the load as it was changed. */
  #paused = false;
  #scale = 1;
  #delay: NodeJS.Timeout | undefined;

  constructor(
    manifests: readonly WorkflowManifest[],
    cores: { readonly slots: readonly number[]; readonly pool: number },
    host: JobHost,
    listener: JobListener,
  ) {
    this.#manifests = new Map(manifests.map((manifest) => [manifest.name, manifest]));
    this.#job = new Job(manifests, cores.slots, cores.pool);
    this.#host = host;
    this.#listener = listener;
  }

  start(): void {
    this.#apply(this.#job.step({ kind: "start" }, this.#host.now()));
  }

  stop(): void {
    this.#apply(this.#job.step({ kind: "stop" }, this.#host.now()));
  }

  /** Steers whatever runs now, and what begins later. */
  steer(kind: "pause" | "resume"): void {
    this.#paused = kind === "pause";
    for (const [name, running] of this.#running) {
      const { cores, execution, phase } = running;
      if (phase === "held" && !this.#paused) this.#start(name, running);
      else if (phase === "running")
        for (const core of cores) this.#host.send(core, { kind, execution });
    }
    this.#apply(this.#job.step({ kind }, this.#host.now()));
  }

  scale(factor: number): void {
    this.#scale *= factor;
    for (const { cores, execution, manifest, phase } of this.#running.values()) {
      if (phase !== "running" || manifest.load.kind === "search") continue;
      for (const core of cores) this.#host.send(core, { kind: "scale", execution, factor });
    }
  }

  /** A search goes on to another load. */
  level(workflow: string, load: number): void {
    const running = this.#running.get(workflow);
    if (running?.phase !== "running") return;
    const { cores, execution } = running;
    for (const core of cores) this.#host.send(core, { kind: "level", execution, load });
  }

  /** A search has its answer: the workflow ends as when its time is over. */
  finish(workflow: string): void {
    this.#stopWorkflow(workflow);
  }

  coreLost(core: number): void {
    for (const [name, running] of this.#running) {
      if (!running.cores.delete(core)) continue;
      running.preparing.delete(core);
      running.unfinished.delete(core);
      if (running.aside === core) this.#asideLost(name, running);
      else this.#advance(name, running);
    }
    this.#apply(this.#job.step({ kind: "coreLost", core }, this.#host.now()));
  }

  /** The core that was setting up or tearing down is gone. */
  #asideLost(name: string, running: Running): void {
    this.#listener.workflowBusy(name, null);
    if (running.phase === "setup") {
      const message = "the executor core that ran the set-up was lost";
      this.#fail(name, running, { message, location: null, mistake: false });
      return;
    }
    this.#listener.note(`the executor core that tore down "${name}" was lost`);
    this.#report(name, running);
  }

  /** Cores that should speak ten times a second: they make load. */
  loadingCores(): number[] {
    return this.#busyCores(({ phase }) => phase === "running");
  }

  /** Cores that were to end what they do when the run was stopped; a tear-down has its own limit. */
  stoppedCores(): number[] {
    return this.#busyCores(({ phase }) => phase !== "teardown");
  }

  /** Cores whose set-up or tear-down did not even end at its limit: code there never waits. */
  stuckCores(): number[] {
    const now = this.#host.now();
    return this.#busyCores(({ asideAt, manifest, phase }) => {
      if (phase !== "setup" && phase !== "teardown") return false;
      const limitMs = phase === "setup" ? manifest.setupMsMax : manifest.teardownMsMax;
      return now - asideAt > limitMs + LIMIT_SLACK_MS;
    });
  }

  #busyCores(which: (running: Running) => boolean): number[] {
    return [...this.#running.values()].filter(which).flatMap((running) => {
      if (running.phase === "running") return [...running.unfinished];
      if (running.phase === "preparing") return [...running.preparing];
      return running.aside === undefined ? [] : [running.aside];
    });
  }

  onEvent(core: number, event: CoreEvent): void {
    switch (event.kind) {
      case "log":
        this.#host.log(event.line);
        return;
      case "unhandled":
        this.#host.log(event.line);
        this.#listener.fault(null, { gate: "no error was left unhandled", text: event.line });
        return;
      case "loaded":
      case "loadFailed":
      case "traced":
        return;
      case "shared": {
        const answer = this.#shared.answer(event.request);
        this.#host.send(core, { kind: "shared", id: event.id, answer });
        return;
      }
      default: {
        const name = this.#nameOf(event.execution);
        const running = name === undefined ? undefined : this.#running.get(name);
        if (name !== undefined && running !== undefined)
          this.#onExecutionEvent(core, name, running, event);
      }
    }
  }

  #onExecutionEvent(
    core: number,
    name: string,
    running: Running,
    event: Exclude<
      CoreEvent,
      { kind: "log" | "unhandled" | "loaded" | "loadFailed" | "shared" | "traced" }
    >,
  ): void {
    const { execution } = running;
    switch (event.kind) {
      case "prepared":
        running.preparing.delete(core);
        this.#advance(name, running);
        return;
      case "failed":
        this.#fail(name, running, event.problem);
        return;
      case "abort":
        this.#listener.fault(name, { gate: "no code asked for the end", text: event.reason });
        this.#host.abort(name, event.reason);
        return;
      case "setupDone":
        running.setup = event.value;
        running.phase = "held";
        running.aside = undefined;
        this.#listener.workflowBusy(name, null);
        if (running.stopped) this.#tearDown(name, running, core);
        else if (!this.#paused) this.#start(name, running);
        return;
      case "frame":
        this.#frame(core, name, execution, event);
        return;
      case "lease":
        this.#host.send(core, {
          kind: "lease",
          execution,
          name: event.name,
          ...running.leases.grant(event.name, event.size),
        });
        return;
      case "finished":
        this.#listener.coreFinished(name, core);
        for (const note of event.notes) this.#listener.note(note);
        for (const note of event.counts) this.#listener.countedNote(note);
        for (const { part, ...fault } of event.faults) this.#listener.fault(part ?? name, fault);
        running.outcomes.set(core, event);
        running.unfinished.delete(core);
        this.#advance(name, running);
        return;
      case "tornDown":
        for (const fault of event.faults) this.#listener.fault(name, fault);
        this.#report(name, running);
        return;
      default:
        assertNever(event);
    }
  }

  #start(name: string, running: Running): void {
    const { cores, execution, manifest, setup } = running;
    running.phase = "running";
    for (const core of cores) {
      this.#host.send(core, { kind: "start", execution, setup });
      if (this.#scale !== 1 && manifest.load.kind !== "search")
        this.#host.send(core, { kind: "scale", execution, factor: this.#scale });
    }
    this.#listener.workflowStarted(name, [...cores]);
  }

  #frame(
    core: number,
    name: string,
    execution: number,
    { bytes, health, part }: Extract<CoreEvent, { kind: "frame" }>,
  ): void {
    const frame = this.#listener.frame(part ?? name, core, bytes, health);
    this.#host.send(core, { kind: "acknowledge", execution, part, frame });
  }

  /** Goes on to the next phase when nobody is waited for any more. */
  #advance(name: string, running: Running): void {
    const [first] = running.cores;
    if (first === undefined) {
      this.#running.delete(name);
      return;
    }
    if (running.phase === "preparing" && running.preparing.size === 0) {
      running.phase = "setup";
      this.#beginAside(name, running, first);
      this.#host.send(first, { kind: "setup", execution: running.execution });
    } else if (running.phase === "running" && running.unfinished.size === 0) {
      this.#tearDown(name, running, first);
    }
  }

  #beginAside(name: string, running: Running, core: number): void {
    running.aside = core;
    running.asideAt = this.#host.now();
    const doing = running.phase === "setup" ? "setting up" : "tearing down";
    this.#listener.workflowBusy(name, doing);
  }

  #tearDown(name: string, running: Running, core: number): void {
    const { execution, setup } = running;
    running.phase = "teardown";
    this.#beginAside(name, running, core);
    this.#host.send(core, { kind: "teardown", execution, setup });
  }

  #fail(name: string, running: Running, problem: Problem): void {
    if (running.failed) return;
    running.failed = true;
    this.#running.delete(name);
    this.#listener.workflowBusy(name, null);
    if (running.stopped) {
      // A set-up that was told to end may end in any way.
      for (const core of running.cores) this.#step(name, core, { ok: true, contextUpdates: {} });
      return;
    }
    this.#host.problem(problem);
    const error =
      problem.location === null ? problem.message : `${problem.location}: ${problem.message}`;
    for (const core of running.cores) {
      this.#step(name, core, { ok: false, error });
    }
  }

  #report(name: string, running: Running): void {
    this.#running.delete(name);
    this.#listener.workflowBusy(name, null);
    for (const core of [...running.cores]) {
      const contextUpdates = running.outcomes.get(core)?.provided ?? {};
      this.#step(name, core, { ok: true, contextUpdates });
    }
  }

  #step(workflow: string, core: number, outcome: ExecutionOutcome): void {
    this.#apply(
      this.#job.step({ kind: "executionFinished", workflow, core, outcome }, this.#host.now()),
    );
  }

  #apply(effects: readonly JobEffect[]): void {
    for (const effect of effects) this.#perform(effect);
    clearTimeout(this.#delay);
    const deadline = this.#job.nextDeadline();
    if (deadline === null) return;
    const tick = (): void => this.#apply(this.#job.step({ kind: "tick" }, this.#host.now()));
    // Timers hold at most 2^31 ms and may come early: then it is armed again.
    this.#delay = setTimeout(tick, Math.min(Math.max(1, deadline - this.#host.now()), 2e9));
  }

  /** Nothing begins any more, whatever was planned. */
  end(): void {
    clearTimeout(this.#delay);
  }

  #perform(effect: JobEffect): void {
    switch (effect.kind) {
      case "dispatch":
        this.#dispatch(effect);
        return;
      case "stopWorkflow":
        this.#stopWorkflow(effect.workflow);
        return;
      case "finishWorkflow":
        this.#listener.workflowFinished(effect.workflow, effect.status, effect.error);
        return;
      case "skip":
        this.#listener.workflowSkipped(effect.workflow, effect.becauseOf);
        return;
      case "jobDone":
        this.#host.done();
        return;
      default:
        assertNever(effect);
    }
  }

  #stopWorkflow(name: string): void {
    const running = this.#running.get(name);
    if (running === undefined) return;
    if (running.phase === "running") {
      for (const core of running.cores)
        this.#host.send(core, { kind: "stop", execution: running.execution });
      return;
    }
    if (running.phase === "teardown") return;
    const [first] = running.cores;
    if (running.phase === "setup" && running.aside !== undefined) {
      running.stopped = true;
      this.#host.send(running.aside, { kind: "stop", execution: running.execution });
      return;
    }
    if (running.phase === "held" && first !== undefined) {
      this.#tearDown(name, running, first);
      return;
    }
    // Stopped before it began: nothing was measured.
    this.#running.delete(name);
    for (const core of running.cores) this.#step(name, core, { ok: true, contextUpdates: {} });
  }

  #dispatch({ context, cores, users, workflow }: Extract<JobEffect, { kind: "dispatch" }>): void {
    const manifest = this.#manifests.get(workflow);
    if (manifest === undefined) return;
    const execution = this.#executions++;
    this.#running.set(workflow, {
      execution,
      manifest,
      cores: new Set(cores),
      preparing: new Set(cores),
      unfinished: new Set(cores),
      outcomes: new Map(),
      leases: new LeaseAllocator(manifest.load.kind === "shared" ? manifest.load.iterations : 0),
      setup: undefined,
      aside: undefined,
      asideAt: 0,
      stopped: false,
      phase: "preparing",
      failed: false,
    });
    cores.forEach((core, index) => {
      const share = { index, count: cores.length, users };
      this.#host.send(core, { kind: "prepare", execution, workflow, share, context });
    });
  }

  #nameOf(execution: number): string | undefined {
    for (const [name, running] of this.#running) if (running.execution === execution) return name;
    return undefined;
  }
}
