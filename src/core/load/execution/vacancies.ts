/**
 * Shares of lost cores that another core may take over. It joins at the current time of the plan: the load in between
 * is missing and not made up for.
 *
 *   coreLost ─▶ its share is vacant ─▶ coreJoined: assigned, agreed ─▶ prepare ─▶ start with the plan's time
 *                                  ├─▶ coreForgone: the workflow continues without it
 *                                  └─▶ all others have finished: so has the workflow
 */

import type { Problem } from "../job/core-messages.ts";
import type { Job } from "../job/job.ts";
import { planDurationMs } from "../plan/load.ts";
import type { Dealt, PhaseStep, PhasesInput, PhasesListener } from "./phase-types.ts";
import {
  type CoreOrder,
  isDealtAgain,
  prepareCommand,
  type Running,
  type RunningWorkflows,
  startCommands,
} from "./running.ts";
import type { Steering } from "./steering.ts";

interface VacancyPorts {
  agree(step: PhaseStep): void;
  send(orders: readonly CoreOrder[]): void;
  advanceJob(input: Parameters<Job["step"]>[0]): void;
  /** Workflows that have not begun. */
  hasWaiting(): boolean;
  /** Called when a core is no longer awaited. */
  advance(name: string, running: Running): void;
  /** Called when the core that was setting up or tearing down is lost. */
  asideLost(name: string, running: Running): void;
}

type Joined = Extract<PhasesInput, { kind: "coreJoined" }>;

export class Vacancies {
  readonly lost = new Map<number, { readonly awaited: boolean }>();
  readonly #running: RunningWorkflows;
  readonly #steering: Steering;
  readonly #listener: PhasesListener;
  readonly #ports: VacancyPorts;

  constructor(
    running: RunningWorkflows,
    steering: Steering,
    listener: PhasesListener,
    ports: VacancyPorts,
  ) {
    this.#running = running;
    this.#steering = steering;
    this.#listener = listener;
    this.#ports = ports;
  }

  take(
    input: Extract<PhasesInput, { kind: "coreLost" | "coreJoined" | "coreForgone" }>,
    now: number,
  ): void {
    if (input.kind === "coreLost") this.#onLost(input.core, input.awaited);
    else if (input.kind === "coreJoined") this.#onJoined(input, now);
    else this.#onForgone(input.core);
  }

  #onLost(core: number, awaited: boolean): void {
    this.lost.set(core, { awaited });
    for (const [name, running] of this.#running) {
      this.#onJoinedLost(core, name, running, awaited);
      const share = running.cores.get(core);
      if (share === undefined) continue;
      running.cores.delete(core);
      running.preparing.delete(core);
      const isUnfinished = running.unfinished.delete(core);
      if (awaited && isUnfinished && isDealtAgain(running) && !isEnding(running))
        running.vacant.set(core, { index: share.index, to: null });
      if (running.aside === core) this.#ports.asideLost(name, running);
      else this.#ports.advance(name, running);
    }
    this.#ports.advanceJob({ kind: "coreLost", core, awaited });
    if (awaited && !this.#isKept(core)) this.#ports.advanceJob({ kind: "shareLost", core });
  }

  /** The lost core was to get a share that was not assigned yet: the share is as vacant as before. */
  #onJoinedLost(core: number, name: string, running: Running, awaited: boolean): void {
    for (const [instead, { index, to }] of running.vacant) {
      if (to !== core) continue;
      running.vacant.delete(instead);
      if (awaited && !isEnding(running)) running.vacant.set(core, { index, to: null });
      this.#ports.advance(name, running);
      return;
    }
  }

  #isKept(core: number): boolean {
    return [...this.#running].some(([, { vacant }]) => vacant.has(core));
  }

  #onJoined({ core, dealt = [], instead }: Joined, now: number): void {
    this.lost.set(instead, { awaited: false });
    for (const [name, running] of this.#running) {
      const isLate = !dealt.includes(name) && this.#isOver(name, running, now);
      if (running.vacant.has(instead) && isLate) this.#forgo(name, instead);
    }
    this.#ports.advanceJob({ kind: "coreJoined", core, instead });
    for (const [workflow, { vacant }] of this.#running) {
      const share = vacant.get(instead);
      if (share === undefined) continue;
      share.to = core;
      this.#ports.agree({ kind: "deal", workflow, core, instead });
    }
  }

  /** Whether a replacement would have work to do, as far as is known. */
  isOfUse(core: number, now: number): boolean {
    if (!this.lost.has(core)) return true;
    const isKept = [...this.#running].some(
      ([name, running]) => running.vacant.has(core) && !this.#isOver(name, running, now),
    );
    return isKept || this.#ports.hasWaiting();
  }

  /** A core has finished: after the last one, vacant shares are not awaited. */
  finished(name: string, running: Running): void {
    if (running.unfinished.size === 0)
      for (const [instead, { to }] of [...running.vacant])
        if (to === null) this.#forgo(name, instead);
    this.#ports.advance(name, running);
  }

  /** True when nothing is left to do for a replacement. */
  #isOver(name: string, running: Running, now: number): boolean {
    const { load, warmupMs } = running.manifest;
    const durationMs = planDurationMs(load);
    return durationMs !== null && this.#planMs(name, running, now) >= warmupMs + durationMs;
  }

  #onForgone(core: number): void {
    this.lost.set(core, { awaited: false });
    for (const [name] of this.#running) this.#forgo(name, core);
    this.#ports.advanceJob({ kind: "coreForgone", core });
  }

  /** Makes the workflow wait for no share any more. */
  forgoAll(name: string): void {
    for (const instead of [...(this.#running.get(name)?.vacant.keys() ?? [])])
      this.#forgo(name, instead);
  }

  /** Continues the workflow without the share that was kept. */
  #forgo(name: string, instead: number): void {
    const running = this.#running.get(name);
    const share = running?.vacant.get(instead);
    if (running === undefined || share === undefined) return;
    running.vacant.delete(instead);
    this.#ports.advanceJob({ kind: "shareLost", core: share.to ?? instead });
    this.#ports.advance(name, running);
  }

  /** Starts a joining core at the position of the others. */
  prepared(core: number, name: string, running: Running, now: number): void {
    const planMs = this.#planMs(name, running, now);
    this.#ports.send(startCommands(running, core, this.#steering.commands, planMs));
    this.#listener.shareJoined(name, core);
  }

  /** Plan time as reported by its cores, or else by the driver's clock. */
  #planMs(name: string, { phase, startedAt }: Running, now: number): number {
    if (phase !== "running") return 0;
    const until = this.#steering.pausedAt ?? now;
    return this.#listener.planMs(name) ?? Math.max(0, until - startedAt);
  }

  /** A joining core failed to prepare, which does not affect the others. */
  unprepared(core: number, name: string, running: Running, problem: Problem): void {
    running.cores.delete(core);
    running.preparing.delete(core);
    running.unfinished.delete(core);
    this.#listener.note(
      `core ${core} could not go on with a share of "${name}": ${problem.message}`,
    );
    this.#ports.advanceJob({ kind: "shareLost", core });
    this.#ports.advance(name, running);
  }

  dealt({ core, execution, instead, workflow }: Dealt): void {
    const running = this.#running.get(workflow);
    const share = running?.vacant.get(instead);
    if (running === undefined || share?.to !== core) return;
    running.vacant.delete(instead);
    running.cores.set(core, { index: share.index, execution });
    running.preparing.add(core);
    running.unfinished.add(core);
    this.#ports.send([prepareCommand(running, core)]);
  }
}

/** True when its load is over or ending: all remaining cores were ordered to stop, or have finished. */
function isEnding({ ending, outcomes, unfinished }: Running): boolean {
  return ending || (unfinished.size === 0 && outcomes.size > 0);
}
