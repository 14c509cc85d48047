/**
 * The executions of a job, driven by what its group has committed: every step of the machine goes into the log
 * and takes effect when it comes out of it.
 *
 * A new leader takes the decisions of the log again without sending anything, then proposes the steps that its
 * predecessor had not, and says again what cores may not have heard.
 */

import { assertNever } from "../../base/assert.ts";
import type { PhaseStep } from "../../run/execution/phase-types.ts";
import type { RunEffect, RunInput, RunMachine } from "../../run/execution/run-machine.ts";
import type { JobStatus as RunStatus } from "../../run/job/job.ts";
import type { Control, Order } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { MessageLines } from "./message-lines.ts";
import type { Decision, RunEntry, RunState } from "./run-state.ts";

interface DriverPorts {
  readonly lines: MessageLines;
  order(core: number, order: Order): void;
  propose(eventId: string, entry: RunEntry): void;
  onDone(status: RunStatus): void;
}

export class RunDriver {
  readonly machine: RunMachine;
  readonly #context: ManagerContext;
  readonly #state: RunState;
  readonly #ports: DriverPorts;
  /** Steps on their way into the log, by their entries. */
  readonly #steps = new Map<string, PhaseStep>();
  /** Steps that the machine asks for while decisions are taken again. */
  #unagreed: PhaseStep[] = [];
  #replaying = false;
  #isStopped = false;

  constructor(machine: RunMachine, state: RunState, context: ManagerContext, ports: DriverPorts) {
    this.machine = machine;
    this.#state = state;
    this.#context = context;
    this.#ports = ports;
  }

  nextDeadline(): number | null {
    return this.machine.nextDeadline();
  }

  step(input: RunInput): void {
    for (const effect of this.machine.step(input, this.#context.now)) this.#perform(effect);
  }

  onTick(): void {
    if (this.#context.now >= (this.nextDeadline() ?? Number.POSITIVE_INFINITY))
      this.step({ kind: "tick" });
  }

  /** An entry of ours came out of the log. */
  onStep(eventId: string): void {
    const step = this.#steps.get(eventId);
    if (step === undefined) return;
    this.#steps.delete(eventId);
    const agreed = this.#state.agreed(eventId, step);
    if (agreed !== null) this.step({ kind: "agreed", step: agreed });
  }

  /** A cancel stops once: it may come before and out of the log. */
  control(control: Control): void {
    if (control.kind !== "cancel") this.step({ kind: "control", control });
    else if (!this.#isStopped) {
      this.#isStopped = true;
      this.step({ kind: "control", control: { kind: "stop" } });
    }
  }

  /** Stands where the log says that the job stands, and goes on from there. */
  adopt(): void {
    this.#replaying = true;
    this.step({ kind: "start" });
    for (const decision of this.#state.history) this.#replay(decision);
    this.#replaying = false;
    const steps = this.#unagreed;
    this.#unagreed = [];
    for (const step of steps) this.#agree(step);
    for (const effect of this.machine.repeat()) this.#perform(effect);
  }

  #replay(decision: Decision): void {
    if (decision.kind === "coreLost") this.step(decision);
    else if (decision.kind === "control") this.control(decision.control);
    else {
      const { step } = decision;
      // Set-up begins when all cores are prepared.
      if (step.kind === "setup") this.#replayPrepared(step.workflow);
      const asked = this.#unagreed.findIndex((one) => isSame(one, step));
      if (asked >= 0) this.#unagreed.splice(asked, 1);
      this.step({ kind: "agreed", step });
    }
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
        if (!this.#replaying) this.#ports.order(effect.core, effect);
        return;
      case "message":
        if (!this.#replaying) this.#ports.lines.add(effect.line);
        return;
      case "agree":
        if (this.#replaying) this.#unagreed.push(effect.step);
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
    if (this.#replaying) return;
    // Loading and ending a core are the worker's own affair.
    if (command.kind === "load" || command.kind === "trace" || command.kind === "exit") return;
    const token = "execution" in command ? command.execution : null;
    this.#ports.order(core, { kind: "command", core, token, command });
  }

  #agree(step: PhaseStep): void {
    const eventId = this.#context.newEventId();
    this.#steps.set(eventId, step);
    this.#ports.propose(eventId, { kind: "step", step });
  }
}

function isSame(one: PhaseStep, other: PhaseStep): boolean {
  const coreOf = (step: PhaseStep): number | null => ("core" in step ? step.core : null);
  const same = one.kind === other.kind && one.workflow === other.workflow;
  return same && coreOf(one) === coreOf(other);
}
