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
import type { CoreEvent } from "../../run/job/core-messages.ts";
import type { JobStatus as RunStatus } from "../../run/job/job.ts";
import type { Control, Order } from "../messages.ts";
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
  #isStopped = false;
  /** Shares whose figures came since this leader took over; null where it led from the start. */
  #framed: Set<string> | null = null;

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
    const now = this.#replayAt ?? this.#context.now;
    for (const effect of this.machine.step(input, now)) this.#perform(effect);
  }

  /**
   * The last frame of a share may have been taken by the leader before, and its end not: then nobody has its
   * figures any more, which is said.
   */
  onEvent(core: number, event: CoreEvent): void {
    if (this.#framed !== null && (event.kind === "frame" || event.kind === "finished")) {
      const share = `${core}/${event.execution}`;
      const isMissing = event.kind === "finished" && !this.#framed.has(share);
      this.#framed.add(share);
      if (isMissing && this.#context.rules.missingNoted)
        this.machine.note(
          `another manager leads the job since: figures of core ${core}, which had ended, are missing`,
        );
    }
    this.step({ kind: "event", core, event });
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
        this.step({ kind: "coreLost", core: decision.core, what: decision.what });
        return;
      case "control":
        this.control(decision.control);
        return;
      default:
        assertNever(decision);
    }
  }

  /** A cancel stops once: it may come before and out of the log. */
  control(control: Control): void {
    if (control.kind === "start") return;
    if (control.kind === "over") this.step({ kind: "joint", word: control });
    else if (control.kind === "begin") this.#begin(control);
    else if (control.kind !== "cancel") this.step({ kind: "control", control });
    else if (!this.#isStopped) {
      this.#isStopped = true;
      this.step({ kind: "control", control: { kind: "stop" } });
    }
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
   * on the clock of this process.
   */
  adopt(beganAt: number): void {
    this.#framed = new Set();
    for (const decision of this.#state.history) {
      this.#replayAt = Math.min(this.#context.now, beganAt + decision.at);
      this.#replay(decision);
    }
    this.#replayAt = null;
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
    if (decision.kind === "step") {
      const { step } = decision;
      // Set-up begins when all cores are prepared.
      if (step.kind === "setup") this.#replayPrepared(step.workflow);
      const asked = this.#unagreed.findIndex((one) => isSame(one, step));
      if (asked >= 0) this.#unagreed.splice(asked, 1);
    }
    this.take(decision);
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
    const token = "execution" in command ? command.execution : null;
    this.#ports.order(core, { kind: "command", core, token, command });
  }

  #agree(step: PhaseStep): void {
    this.#ports.propose(step);
  }
}

function isSame(one: PhaseStep, other: PhaseStep): boolean {
  const workflowOf = (step: PhaseStep): string | null =>
    "workflow" in step ? step.workflow : null;
  const coreOf = (step: PhaseStep): number | null => ("core" in step ? step.core : null);
  const same = one.kind === other.kind && workflowOf(one) === workflowOf(other);
  return same && coreOf(one) === coreOf(other);
}
