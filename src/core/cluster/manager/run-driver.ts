/**
 * The executions of a job, driven by what its group has committed: every step of the machine goes into the log
 * and takes effect when it comes out of it.
 *
 * A new leader takes the decisions of the log again without sending anything, then proposes the steps that its
 * predecessor had not, and says again what cores may not have heard.
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
  /** Steps that the machine asks for while decisions are taken again. */
  #unagreed: PhaseStep[] = [];
  /** The moment at which a decision is taken again; null when decisions are taken as they come. */
  #replayAt: number | null = null;
  /** Why its time was up while it still went on; null: it was not. */
  timedOut: string | null = null;
  #isStopped = false;
  /** Shares whose figures came since this leader took over; null where it led from the start. */
  #framed: Set<string> | null = null;
  /** Hears what is held of the figures that are being taken; null: that is an order. */
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

  /** A cancel has stopped it. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Nobody has asked for its end. */
  get goesOn(): boolean {
    return !this.#isStopped && this.machine.phase !== "stopping" && this.machine.phase !== "done";
  }

  /** Whether another core that took the place of a lost one had something to do. */
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

  /** Of several cores of one worker at once; `hold` hears what is held then, null: that is an order. */
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

  /** Figures that nobody has any more: the leader that had them is gone, and whoever measured them, too. */
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
   * What is known of a core's share; null when only a leader before this one knew it. `complete`: all that it
   * measured is here.
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

  /** A block was asked for and is given by the fold. */
  onGiven(step: BlockStep): void {
    const given = this.#state.given(step);
    if (given !== null) this.step({ kind: "agreed", step: given });
  }

  /** Decisions came out of the log, in their order. */
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
        const dealt = dealtTo(core, this.#state.history);
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

  /** A core that was opened for a lost one and never joined is nobody's loss. */
  #onCoreLost({ awaited, core, figures, what }: Extract<Decision, { kind: "coreLost" }>): void {
    const { joins } = this.#state.coreOf(core) ?? {};
    if (joins !== undefined && !this.#state.joinedCores.has(core)) return;
    this.step({ kind: "coreLost", core, what, awaited, worker: this.#workerOf(core), figures });
  }

  #workerOf(core: number): string {
    return this.#state.coreOf(core)?.worker ?? "";
  }

  /** A cancel stops once: it may come before and out of the log. */
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

  /** What had ended by itself before has not run out of time. (AD-34.63) */
  #timeOut(reason: string): void {
    if (this.goesOn) this.timedOut = reason;
    this.step({ kind: "timeOut", text: reason });
  }

  /** At its instant by the wall clock; one that has passed is now. */
  #begin({ atMs, value, workflow }: Extract<Control, { kind: "begin" }>): void {
    const { now, wall } = this.#context;
    const wallThen = wall - (now - (this.#replayAt ?? now));
    const inMs = Math.max(0, atMs - wallThen);
    this.step({ kind: "joint", word: { kind: "begin", workflow, value, inMs } });
  }

  /**
   * Stands where the log says that the job stands, and goes on from there. `beganAt` is when its group began,
   * on the clock of this process, which may be behind.
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
    // What begins is prepared; where another datacenter has set it up, nothing else says so.
    if (decision.kind === "control" && decision.control.kind === "begin")
      this.#replayPrepared(decision.control.workflow);
    if (decision.kind === "step") this.#replayStep(decision.step);
    this.take(decision);
    // A share that the log says was forgone: only then it is asked for.
    if (decision.kind === "step" && decision.step.kind === "teardown") this.#answer(decision.step);
  }

  #replayStep(step: PhaseStep): void {
    // Set-up begins when all cores are prepared.
    if (step.kind === "setup") this.#replayPrepared(step.workflow);
    this.#answer(step);
    this.#unagreed = this.#unagreed.filter((one) => !isOverBy(one, step));
  }

  /** What was asked for stands in the log. */
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
    // Loading and ending a core are the worker's own affair, and nobody is told single calls.
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

/** What a leader before has dealt was not over, whatever the clock of this one says of its plan. */
function dealtTo(core: number, history: readonly Decision[]): readonly string[] {
  return history.flatMap((one) => {
    const step = one.kind === "step" ? one.step : null;
    return step?.kind === "deal" && step.core === core ? [step.workflow] : [];
  });
}

/** A leader before saw by its clock that nothing was left to do for a share that this one would deal again. */
function isOverBy(asked: PhaseStep, step: PhaseStep): boolean {
  const isOver = step.kind === "teardown" || step.kind === "report";
  return isOver && asked.kind === "deal" && asked.workflow === step.workflow;
}

function isSame(one: PhaseStep, other: PhaseStep): boolean {
  const coreOf = (step: PhaseStep): number | null => ("core" in step ? step.core : null);
  const same = one.kind === other.kind && workflowOf(one) === workflowOf(other);
  return same && coreOf(one) === coreOf(other);
}
