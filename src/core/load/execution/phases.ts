/**
 * The executions of a job as a pure machine: `Job` decides what runs where; this machine carries it out with messages
 * to the cores and reports the results back to it. The local runner and a cluster's manager drive the same object, over
 * pipes and over the network.
 *
 * One workflow over its cores:
 *
 *   place ─▶ prepare on all ─▶ setup on one ─▶ start on all ─▶ frames … ─▶ finished by all ─▶ teardown on one ─▶ report
 *
 * Another core may replace a lost one, at the current time of the plan (`vacancies.ts`).
 *
 * Decisions that must survive the driver are steps that it agrees to before they take effect: `agree` goes out,
 * `agreed` comes back. A manager commits them to a quorum, the local runner agrees at once. Late agreements are
 * ignored.
 */

import { assertNever } from "../../base/assert.ts";
import {
  type CoreCommand,
  type CoreEvent,
  type ExecutionEvent,
  type PartFault,
  type Problem,
  problemText,
} from "../job/core-messages.ts";
import { singleFault } from "../job/faults.ts";
import { type ExecutionOutcome, Job, type JobEffect } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { JointWorkflows } from "./joint-workflows.ts";
import type {
  Finished,
  PhaseStep,
  PhasesEffect,
  PhasesInput,
  PhasesListener,
  Reported,
  SharedStep,
  WorkflowStep,
} from "./phase-types.ts";
import {
  askAside,
  type CoreOrder,
  coresLeft,
  type Dispatch,
  executionOf,
  isLoadOver,
  loadingCommands,
  newRunning,
  outcomeOf,
  prepareCommands,
  type Running,
  RunningWorkflows,
  startCommands,
} from "./running.ts";
import { SharedRequests } from "./shared-requests.ts";
import { ShownComplaints } from "./shown-complaints.ts";
import { Steering, type SteeringInput } from "./steering.ts";
import { takeFigures, takeFrame } from "./taken-figures.ts";
import { Vacancies } from "./vacancies.ts";

export class Phases {
  readonly #job: Job;
  readonly #manifests: ReadonlyMap<string, WorkflowManifest>;
  readonly #listener: PhasesListener;
  readonly #running = new RunningWorkflows();
  readonly shared = new SharedRequests();
  readonly #steering = new Steering(this.#running);
  readonly joint: JointWorkflows;
  readonly vacancies: Vacancies;
  /** The workflow whose placement was agreed before it was requested. */
  #placed: string | null = null;
  readonly #complaints = new ShownComplaints();
  #effects: PhasesEffect[] = [];
  #now = 0;

  /** `slots` are the cores, `pool` those of them that priorities share out. */
  constructor(
    manifests: readonly WorkflowManifest[],
    cores: { readonly slots: readonly number[]; readonly pool: number },
    listener: PhasesListener,
  ) {
    this.#manifests = new Map(manifests.map((manifest) => [manifest.name, manifest]));
    this.#job = new Job(manifests, cores.slots, cores.pool);
    this.#listener = listener;
    this.joint = new JointWorkflows(this.#running, {
      isPaused: () => this.#steering.pausedAt !== null,
      start: (name, running) => this.#start(name, running),
      tearDown: (name, running) => this.#tearDown(name, running),
      report: (name, running) => this.#report(name, running),
      fail: (name, running, problem) => this.#fail(name, running, problem),
    });
    this.vacancies = new Vacancies(this.#running, this.#steering, listener, {
      agree: (step) => this.#agree(step),
      send: (orders) => this.#sendAll(orders),
      advanceJob: (input) => this.#advanceJob(input),
      hasWaiting: () => this.#job.snapshot().some(({ status }) => status === "waiting"),
      advance: (name, running) => this.#advance(name, running),
      asideLost: (name, running) => this.#asideLost(name, running),
    });
  }

  /** Total: ignores unexpected, late and repeated inputs. */
  step(input: PhasesInput, now: number): readonly PhasesEffect[] {
    this.#now = now;
    this.#effects = [];
    if (now >= this.joint.nextDeadline()) this.joint.goOn(now);
    switch (input.kind) {
      case "start":
      case "stop":
      case "tick":
        this.#advanceJob(input);
        break;
      case "agreed":
        this.#onAgreed(input.step);
        break;
      case "event":
        this.#onEvent(input.core, input.event);
        break;
      case "figures":
        this.#sendAll(takeFigures(this.#listener, this.#running, input.from, input.figures));
        break;
      case "coreLost":
      case "coreJoined":
      case "coreForgone":
        this.vacancies.take(input, now);
        break;
      case "pause":
      case "resume":
      case "scale":
      case "level":
        this.#onSteered(input);
        break;
      case "finish":
        this.#stopWorkflow(input.workflow);
        break;
      case "joint":
        this.joint.take(input.word, now);
        break;
      default:
        assertNever(input);
    }
    return this.#effects;
  }

  get running(): RunningWorkflows {
    return this.#running;
  }

  /** When a delay is over or a workflow begins together with others; null when none is pending. */
  nextDeadline(): number | null {
    const [delay, joint] = [this.#job.nextDeadline(), this.joint.nextDeadline()];
    return delay === null && !Number.isFinite(joint) ? null : Math.min(delay ?? joint, joint);
  }

  repeat(now: number): readonly CoreOrder[] {
    return this.#running.repeat(now, this.#steering.commands);
  }

  #send(core: number, command: CoreCommand): void {
    this.#effects.push({ kind: "send", core, command });
  }

  #sendAll(orders: readonly CoreOrder[]): void {
    for (const { command, core } of orders) this.#send(core, command);
  }

  #agree(step: PhaseStep): void {
    this.#effects.push({ kind: "agree", step });
  }

  #onSteered(input: SteeringInput): void {
    this.#sendAll(this.#steering.take(input, this.#now));
    if (input.kind === "resume") this.joint.goOn(this.#now);
    if (input.kind === "pause" || input.kind === "resume") this.#advanceJob(input);
  }

  #onPrepared(core: number, name: string, running: Running): void {
    if (!running.preparing.delete(core)) return;
    if (running.phase === "running") this.vacancies.prepared(core, name, running, this.#now);
    else this.#advance(name, running);
  }

  /** Handles the loss of the core that was setting up or tearing down. */
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

  /** A replay may place it slightly before or after the original time: the step says where it runs. */
  #onPlaced(step: Extract<WorkflowStep, { kind: "place" }>): void {
    const { cores, execution, workflow } = step;
    const known = this.#running.get(workflow);
    if (known !== undefined && known.phase !== "placing") return;
    if (known?.dispatch.cores.join() !== cores.join()) {
      this.#placed = workflow;
      this.#advanceJob({ kind: "place", workflow, cores });
      this.#placed = null;
    }
    const running = this.#running.get(workflow);
    if (running === undefined) return;
    this.#prepare(running, execution);
    this.#advance(workflow, running);
  }

  #onAgreed(step: WorkflowStep | SharedStep): void {
    if (step.kind === "numbers" || step.kind === "queue") {
      this.#effects.push(...this.shared.agreed(step));
      return;
    }
    if (step.kind === "place") {
      this.#onPlaced(step);
      return;
    }
    if (step.kind === "deal") {
      this.vacancies.dealt(step);
      return;
    }
    const name = step.workflow;
    const running = this.#running.get(name);
    if (running === undefined) return;
    switch (step.kind) {
      case "setup":
        this.#onSetUpAgreed(name, running, step.core);
        return;
      case "setupDone":
        this.#onSetUp(name, running, step.value);
        return;
      case "teardown":
        // The original decision waited for no share: one that seems to be kept was abandoned by another clock.
        this.vacancies.forgoAll(name);
        this.#onTearDownAgreed(name, running, step.core);
        return;
      case "report":
        this.#onReported(name, running, step);
        return;
      case "finished":
        this.#onFinished(step.core, name, running, step.finished);
        return;
      case "grant": {
        const { core, execution, from, last, name: lease, request, to } = step;
        if (running.cores.has(core))
          this.#send(core, { kind: "lease", execution, name: lease, request, from, to, last });
        return;
      }
      default:
        assertNever(step);
    }
  }

  #prepare(running: Running, execution: number): void {
    running.phase = "preparing";
    for (const [core, { index }] of running.cores) running.cores.set(core, { index, execution });
    this.#sendAll(prepareCommands(running));
  }

  #onSetUpAgreed(name: string, running: Running, core: number): void {
    if (running.phase !== "setup" || running.aside !== core) return;
    if (running.stopped) {
      this.#abandon(name, running);
      return;
    }
    this.#beginAside(name, running);
    this.#send(core, { kind: "setup", execution: executionOf(running, core) ?? 0 });
  }

  #onTearDownAgreed(name: string, running: Running, core: number): void {
    if (running.phase !== "teardown" || running.aside !== core) return;
    const { setup } = running;
    this.#beginAside(name, running);
    this.#send(core, { kind: "teardown", execution: executionOf(running, core) ?? 0, setup });
  }

  #onSetUp(name: string, running: Running, value: unknown): void {
    if (running.phase !== "setup") return;
    running.setup = value;
    running.aside = undefined;
    this.#listener.workflowBusy(name, null);
    if (running.stopped) this.#tearDown(name, running);
    else this.joint.hold(name, running, this.#now);
  }

  #onEvent(core: number, event: CoreEvent): void {
    switch (event.kind) {
      case "log":
        if (event.isComplaint && !this.#complaints.isNew(event.line)) return;
        this.#effects.push({ kind: "log", line: event.line });
        return;
      case "unhandled":
        this.#listener.fault(null, singleFault("no error was left unhandled", event.line));
        this.#effects.push({ kind: "log", line: event.line });
        return;
      case "loaded":
      case "calls":
      case "loadFailed":
      case "declared":
      case "traced":
        return;
      case "shared":
        this.#effects.push(...this.shared.ask(core, event));
        return;
      default: {
        const ended = this.#running.endedOf(core, event.execution);
        if (ended !== undefined && event.kind === "frame")
          this.#sendAll([takeFrame(this.#listener, core, ended, event)]);
        const name = this.#running.nameOf(core, event.execution);
        const running = name === undefined ? undefined : this.#running.get(name);
        if (name !== undefined && running !== undefined)
          this.#onExecutionEvent(core, name, running, event);
      }
    }
  }

  #onExecutionEvent(core: number, name: string, running: Running, event: ExecutionEvent): void {
    switch (event.kind) {
      case "prepared":
        this.#onPrepared(core, name, running);
        return;
      case "failed":
        if (running.phase === "running" && running.preparing.has(core))
          this.vacancies.unprepared(core, name, running, event.problem);
        else this.#fail(name, running, event.problem);
        return;
      case "abort":
        this.#effects.push({ kind: "abort", workflow: name, reason: event.reason });
        return;
      case "setupDone":
        running.asideOver = true;
        this.#agree({ kind: "setupDone", workflow: name, value: event.value });
        return;
      case "frame":
        this.#sendAll([takeFrame(this.#listener, core, name, event)]);
        return;
      case "lease":
        this.#agree({ ...event, kind: "grant", workflow: name, core });
        return;
      case "finished":
        // A new leader receives it twice: from the worker's events, and as the answer to a repeated start.
        if (running.unfinished.has(core) && !running.over.has(core))
          this.#agree({ kind: "finished", workflow: name, core, finished: event });
        running.over.add(core);
        return;
      case "tornDown":
        this.#report(name, running, event.faults);
        return;
      default:
        assertNever(event);
    }
  }

  #onFinished(core: number, name: string, running: Running, event: Finished): void {
    if (!running.unfinished.delete(core)) return;
    running.preparing.delete(core);
    this.#listener.coreFinished(name, core);
    for (const note of event.notes) this.#listener.note(note);
    for (const note of event.counts) this.#listener.countedNote(note);
    for (const { part, ...one } of event.faults) this.#listener.fault(part ?? name, one);
    running.outcomes.set(core, event);
    this.vacancies.finished(name, running);
  }

  #start(name: string, running: Running): void {
    const { cores, preparing } = running;
    running.phase = "running";
    running.startedAt = this.#now;
    const ready = [...cores.keys()].filter((core) => !preparing.has(core));
    for (const core of ready)
      this.#sendAll(startCommands(running, core, this.#steering.commands, 0));
    this.#listener.workflowStarted(name, ready);
  }

  /** Moves to the next phase when no core is awaited any more. */
  #advance(name: string, running: Running): void {
    const { preparing, unfinished, vacant } = running;
    const [first] = running.cores.keys();
    if (first === undefined) {
      if (vacant.size === 0) this.#running.delete(name);
      return;
    }
    if (running.phase === "preparing" && preparing.size === 0) {
      if (running.manifest.joint === "other") this.joint.hold(name, running, this.#now);
      else this.#setUp(name, running, first);
    } else if (running.phase === "running" && unfinished.size + vacant.size === 0) {
      this.joint.ended(name, running);
    }
  }

  #setUp(name: string, running: Running, core: number): void {
    running.phase = "setup";
    askAside(running, core);
    this.#agree({ kind: "setup", workflow: name, core });
  }

  #tearDown(name: string, running: Running): void {
    const [core] = running.cores.keys();
    if (core === undefined) return;
    running.phase = "teardown";
    askAside(running, core);
    this.#agree({ kind: "teardown", workflow: name, core });
  }

  #beginAside(name: string, running: Running): void {
    running.asideAt = this.#now;
    this.#listener.workflowBusy(name, running.phase === "setup" ? "setting up" : "tearing down");
  }

  #fail(name: string, running: Running, problem: Problem): void {
    if (running.phase === "reporting") return;
    this.#listener.workflowBusy(name, null);
    if (running.stopped) {
      // A setup that was ordered to end may end in any way.
      this.#abandon(name, running);
      return;
    }
    if (running.phase !== "setup") this.#effects.push({ kind: "problem", problem });
    running.phase = "reporting";
    this.#agree({ kind: "report", workflow: name, error: problemText(problem), faults: [] });
  }

  #report(name: string, running: Running, faults: readonly PartFault[] = []): void {
    if (running.phase === "reporting") return;
    running.phase = "reporting";
    this.#listener.workflowBusy(name, null);
    this.#agree({ kind: "report", workflow: name, error: running.failure, faults });
  }

  #onReported(name: string, running: Running, { error, faults }: Reported): void {
    this.#running.delete(name);
    for (const { part, ...one } of faults) this.#listener.fault(part ?? name, one);
    this.#settle(name, running, (core) => outcomeOf(running, core, error));
  }

  #settle(workflow: string, running: Running, how: (core: number) => ExecutionOutcome): void {
    for (const core of coresLeft(running))
      this.#advanceJob({ kind: "executionFinished", workflow, core, outcome: how(core) });
  }

  #advanceJob(input: Parameters<Job["step"]>[0]): void {
    for (const effect of this.#job.step(input, this.#now)) this.#perform(effect);
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
        this.#effects.push({ kind: "done", status: effect.status });
        return;
      default:
        assertNever(effect);
    }
  }

  #stopWorkflow(name: string): void {
    const running = this.#running.get(name);
    if (running === undefined || isLoadOver(running)) return;
    if (running.phase === "running") {
      running.ending = true;
      this.#sendAll(loadingCommands(running, (execution) => ({ kind: "stop", execution })));
      this.vacancies.forgoAll(name);
      return;
    }
    const { aside } = running;
    if (running.phase === "setup" && aside !== undefined) {
      running.stopped = true;
      const execution = executionOf(running, aside) ?? 0;
      if (Number.isFinite(running.asideAt)) this.#send(aside, { kind: "stop", execution });
      return;
    }
    if (running.phase === "held" && running.manifest.joint !== "other") {
      this.#tearDown(name, running);
      return;
    }
    this.#abandon(name, running);
  }

  /** Stopped before it began: nothing was measured. */
  #abandon(name: string, running: Running): void {
    this.#running.delete(name);
    this.#settle(name, running, () => ({ ok: true, contextUpdates: {} }));
  }

  #dispatch(dispatch: Dispatch): void {
    const { cores, workflow } = dispatch;
    const manifest = this.#manifests.get(workflow);
    if (manifest === undefined) return;
    this.#running.set(workflow, newRunning(manifest, dispatch, this.vacancies.lost));
    if (this.#placed !== workflow) this.#agree({ kind: "place", workflow, cores });
  }
}
