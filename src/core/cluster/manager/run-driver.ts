/**
 * Drives the executions of a job from what its group has committed: every step of the machine goes into the log and
 * takes effect when it is committed.
 *
 * A new leader replays the decisions of the log without sending anything, then proposes the steps that its predecessor
 * had not, and repeats commands that cores may not have received.
 */

import { assertNever } from "../../base/assert.ts";
import type { PhaseStep } from "../../load/execution/phase-types.ts";
import type { RunEffect, RunInput, RunMachine } from "../../load/execution/run-machine.ts";
import type { CoreEvent, MergedFigures } from "../../load/job/core-messages.ts";
import type { JobStatus as RunStatus } from "../../load/job/job.ts";
import type { LossFigures } from "../../load/results/loss-figures.ts";
import type { Control, HeldFigures, Order } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { BlockStep } from "./given-blocks.ts";
import type { MessageLines } from "./message-lines.ts";
import type { Decision } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";

interface DriverPorts {
  readonly lines: MessageLines;
  order(core: number, order: Order): void;
  propose(step: PhaseStep): void;
  onDone(status: RunStatus): void;
}

export class RunDriver {
  readonly machine: RunMachine;
  readonly #context: ManagerContext;
  readonly #state: RunState;
  readonly #ports: DriverPorts;
  /** Steps that the machine requests during replay. */
  #unagreed: PhaseStep[] = [];
  /** Time of the decision being replayed; null outside of replay. */
  #replayAt: number | null = null;
  /** Reason of the timeout when it was reached while the job still ran; null: it was not. */
  timedOut: string | null = null;
  #isStopped = false;
  /** Shares whose metrics arrived since this leader took over; null where it led from the start. */
  #framed: Set<string> | null = null;
  /** Receives the retained part of the metrics being processed; null: that is sent as an order. */
  #hold: ((held: HeldFigures) => void) | null = null;

  constructor(machine: RunMachine, state: RunState, context: ManagerContext, ports: DriverPorts) {
    this.machine = machine;
    this.#state = state;
    this.#context = context;
    this.#ports = ports;
  }

  nextDeadline(): number | null {
    return this.machine.nextDeadline();
  }

  /** True once a cancel has stopped the job. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** True while no end has been requested. */
  get goesOn(): boolean {
    return !this.#isStopped && this.machine.phase !== "stopping" && this.machine.phase !== "done";
  }

  /** Whether a replacement of the core would have work to do. */
  awaits(core: number): boolean {
    return this.goesOn && this.machine.awaits(core, this.#context.now);
  }

  step(input: RunInput): void {
    const now = this.#replayAt ?? this.#context.now;
    for (const effect of this.machine.step(input, now)) this.#perform(effect);
  }

  onEvent(core: number, event: CoreEvent): void {
    if (event.kind === "frame") this.#framed?.add(`${core}/${event.execution}`);
    this.step({ kind: "event", core, event });
  }

  /** Metrics of several cores of one worker; `hold` receives the retained part, null: that is sent as an order. */
  onFigures(
    from: string,
    figures: MergedFigures,
    hold: ((held: HeldFigures) => void) | null,
  ): void {
    const { cores, execution } = figures;
    for (const { core } of cores) this.#framed?.add(`${core}/${execution}`);
    this.#hold = hold;
    this.step({ kind: "figures", from, figures });
    this.#hold = null;
  }

  /** Reports metrics that are lost for good: both the leader that had them and the core that measured them are gone. */
  noteMissing(): void {
    const framed = this.#framed;
    if (framed === null || !this.#context.rules.missingNoted) return;
    const missing = this.#state.attempts.filter(
      ({ core, status, token }) => status === "finished" && !framed.has(`${core}/${token}`),
    ).length;
    if (missing > 0)
      this.machine.note(
        `another manager leads the job since: figures of ${missing} shares that had ended are missing`,
      );
  }

  /**
   * Known metrics of a core's share; null when only a previous leader knew them. `complete`: everything it measured is
   * here.
   */
  lossOf(core: number, complete: boolean): LossFigures | null {
    const token = this.#state.attempts.findLast((one) => one.core === core)?.token;
    const isUnknown = token !== undefined && this.#framed?.has(`${core}/${token}`) === false;
    if (isUnknown) return null;
    const figures = this.machine.lossOf(core, this.#context.now);
    const none = { requestsUnseen: 0, requestsPerSecondMax: 0, isUnbounded: false };
    return complete ? { ...figures, ...none } : figures;
  }

  onTick(): void {
    if (this.#context.now >= (this.nextDeadline() ?? Number.POSITIVE_INFINITY))
      this.step({ kind: "tick" });
  }

  /** Answers a block request that the fold has granted. */
  onGiven(step: BlockStep): void {
    const given = this.#state.given(step);
    if (given !== null) this.step({ kind: "agreed", step: given });
  }

  /** Applies committed decisions in order. */
  take(decision: Decision): void {
    switch (decision.kind) {
      case "start":
        this.step({ kind: "start" });
        return;
      case "step":
        this.step({ kind: "agreed", step: decision.step });
        return;
      case "coreLost":
        this.#onCoreLost(decision);
        return;
      case "coreJoined": {
        const { core, instead, kind } = decision;
        const dealt = assignedTo(core, this.#state.history);
        this.step({ kind, core, instead, worker: this.#workerOf(core), dealt });
        return;
      }
      case "coreForgone":
        this.step({ kind: "coreForgone", core: decision.core });
        return;
      case "control":
        this.control(decision.control);
        return;
      default:
        assertNever(decision);
    }
  }

  /** Losing a replacement core that never joined is not a loss of load. */
  #onCoreLost({ awaited, core, figures, what }: Extract<Decision, { kind: "coreLost" }>): void {
    const { joins } = this.#state.coreOf(core) ?? {};
    if (joins !== undefined && !this.#state.joinedCores.has(core)) return;
    this.step({ kind: "coreLost", core, what, awaited, worker: this.#workerOf(core), figures });
  }

  #workerOf(core: number): string {
    return this.#state.coreOf(core)?.worker ?? "";
  }

  /** Applies a control. A cancel stops once, though it may arrive both directly and from the log. */
  control(control: Control): void {
    if (control.kind === "start") return;
    if (control.kind === "over") this.step({ kind: "joint", word: control });
    else if (control.kind === "begin") this.#begin(control);
    else if (control.kind === "timeOut") this.#timeOut(control.reason);
    else if (control.kind !== "cancel") this.step({ kind: "control", control });
    else if (!this.#isStopped) {
      this.#isStopped = true;
      this.step({ kind: "control", control: { kind: "stop" } });
    }
  }

  /** Ignores the timeout when the job had finished by itself before. (AD-34.63) */
  #timeOut(reason: string): void {
    if (this.goesOn) this.timedOut = reason;
    this.step({ kind: "timeOut", text: reason });
  }

  /** Begins at its wall-clock instant; at once if that has passed. */
  #begin({ atMs, value, workflow }: Extract<Control, { kind: "begin" }>): void {
    const { now, wall } = this.#context;
    const wallThen = wall - (now - (this.#replayAt ?? now));
    const inMs = Math.max(0, atMs - wallThen);
    this.step({ kind: "joint", word: { kind: "begin", workflow, value, inMs } });
  }

  /**
   * Replays the log up to the present state of the job and continues from there. `beganAt` is when its group began, on
   * the clock of this process, which may be behind.
   */
  adopt({ beganAt, behindMs }: { readonly beganAt: number; readonly behindMs: number }): void {
    this.#framed = new Set();
    for (const decision of this.#state.history) {
      this.#replayAt = Math.min(this.#context.now, beganAt + decision.at);
      this.#replay(decision);
    }
    this.#replayAt = null;
    this.machine.clockBehind(behindMs);
    const steps = this.#unagreed;
    this.#unagreed = [];
    for (const step of steps) this.#agree(step);
    for (const effect of this.machine.repeat(this.#context.now)) this.#perform(effect);
    for (const name of this.machine.queues)
      this.machine.note(
        `another manager leads the job since: what waited in the shared queue "${name}" is gone`,
      );
  }

  #replay(decision: Decision): void {
    // A begun workflow is prepared; where another datacenter has set it up, no other entry says so.
    if (decision.kind === "control" && decision.control.kind === "begin")
      this.#replayPrepared(decision.control.workflow);
    if (decision.kind === "step") this.#replayStep(decision.step);
    this.take(decision);
    // The machine requests the teardown of an abandoned share only once the decision is applied.
    if (decision.kind === "step" && decision.step.kind === "teardown") this.#answer(decision.step);
  }

  #replayStep(step: PhaseStep): void {
    // Setup begins when all cores are prepared.
    if (step.kind === "setup") this.#replayPrepared(step.workflow);
    this.#answer(step);
    this.#unagreed = this.#unagreed.filter((one) => !isOverBy(one, step));
  }

  /** Removes a requested step that is in the log. */
  #answer(step: PhaseStep): void {
    const asked = this.#unagreed.findIndex((one) => isSame(one, step));
    if (asked >= 0) this.#unagreed.splice(asked, 1);
  }

  #replayPrepared(workflow: string): void {
    for (const { core, token, workflow: of } of this.#state.attempts) {
      const event = { kind: "prepared", execution: token } as const;
      if (of === workflow) this.step({ kind: "event", core, event });
    }
  }

  #perform(effect: RunEffect): void {
    switch (effect.kind) {
      case "send":
        this.#send(effect);
        return;
      case "kill":
        if (this.#replayAt === null) this.#ports.order(effect.core, effect);
        return;
      case "message":
        if (this.#replayAt === null) this.#ports.lines.add(effect.line);
        return;
      case "agree":
        if (this.#replayAt !== null) this.#unagreed.push(effect.step);
        else this.#agree(effect.step);
        return;
      case "done":
        this.#ports.onDone(effect.status);
        return;
      default:
        assertNever(effect);
    }
  }

  #send({ command, core }: Extract<RunEffect, { kind: "send" }>): void {
    if (this.#replayAt !== null) return;
    // Loading and exiting a core are handled by the worker, and single calls are not traced here.
    if (command.kind === "load" || command.kind === "trace" || command.kind === "exit") return;
    if (command.kind === "sampleCalls") return;
    if (command.kind === "acknowledge" && this.#hold !== null) {
      const { execution, frame, part } = command;
      this.#hold({ execution, frame, part });
      return;
    }
    const token = "execution" in command ? command.execution : null;
    this.#ports.order(core, { kind: "command", core, token, command });
  }

  #agree(step: PhaseStep): void {
    this.#ports.propose(step);
  }
}

function workflowOf(step: PhaseStep): string | null {
  return "workflow" in step ? step.workflow : null;
}

/** Workflows that a previous leader assigned to the core; they were not over, whatever this leader's clock says. */
function assignedTo(core: number, history: readonly Decision[]): readonly string[] {
  return history.flatMap((one) => {
    const step = one.kind === "step" ? one.step : null;
    return step?.kind === "deal" && step.core === core ? [step.workflow] : [];
  });
}

/** True when a previous leader found, by its clock, nothing left to do for a share that this one would reassign. */
function isOverBy(asked: PhaseStep, step: PhaseStep): boolean {
  const isOver = step.kind === "teardown" || step.kind === "report";
  return isOver && asked.kind === "deal" && asked.workflow === step.workflow;
}

function isSame(one: PhaseStep, other: PhaseStep): boolean {
  const coreOf = (step: PhaseStep): number | null => ("core" in step ? step.core : null);
  const same = one.kind === other.kind && workflowOf(one) === workflowOf(other);
  return same && coreOf(one) === coreOf(other);
}
