/**
 * How a run is steered: by hand, and by searches and ends that were agreed to. What begins later begins so,
 * and what a core may have missed can be said again: everything here is absolute.
 */

import { assertNever } from "../../base/assert.ts";
import type { CoreCommand } from "../job/core-messages.ts";
import type { PhasesInput } from "./phase-types.ts";
import {
  loadingCommands,
  type Running,
  type RunningWorkflows,
  type Steered,
  type Told,
} from "./running.ts";

export type SteeringInput = Extract<PhasesInput, { kind: "pause" | "resume" | "scale" | "level" }>;

export class Steering {
  readonly #running: RunningWorkflows;
  /** Since when it is paused, by the driver's clock; null when it is not. */
  #pausedAt: number | null = null;
  /** It was paused before: a core may not have heard that it goes on. */
  #wasPaused = false;
  /** Of the plan; null: nobody has asked for another one. */
  #scale: number | null = null;

  constructor(running: RunningWorkflows) {
    this.#running = running;
  }

  get pausedAt(): number | null {
    return this.#pausedAt;
  }

  take(input: SteeringInput, now: number): readonly Told[] {
    switch (input.kind) {
      case "pause":
        this.#pausedAt ??= now;
        this.#wasPaused = true;
        return this.#tellAll("pause");
      case "resume":
        return this.#resume(now);
      case "scale":
        return this.#scaleTo(input.factor);
      case "level":
        return this.#level(input.workflow, input.load);
      default:
        return assertNever(input);
    }
  }

  /** Time in which it was paused is none of the plan's. */
  #resume(now: number): readonly Told[] {
    const pausedMs = now - (this.#pausedAt ?? now);
    this.#pausedAt = null;
    for (const running of this.#loading()) running.startedAt += pausedMs;
    return this.#tellAll("resume");
  }

  #scaleTo(factor: number): readonly Told[] {
    this.#scale = factor;
    return this.#loading()
      .filter(({ manifest }) => manifest.load.kind !== "search")
      .flatMap((running) =>
        loadingCommands(running, (execution) => ({ kind: "scale", execution, factor })),
      );
  }

  #level(workflow: string, load: number): readonly Told[] {
    const running = this.#running.get(workflow);
    if (running?.phase !== "running") return [];
    running.level = load;
    return loadingCommands(running, (execution) => ({ kind: "level", execution, load }));
  }

  #loading(): Running[] {
    return [...this.#running].flatMap(([, one]) => (one.phase === "running" ? [one] : []));
  }

  #tellAll(kind: "pause" | "resume"): readonly Told[] {
    return this.#loading().flatMap((running) =>
      loadingCommands(running, (execution) => ({ kind, execution })),
    );
  }

  readonly commands: Steered = ({ ending, level, manifest }, execution) => {
    const commands: CoreCommand[] = [];
    if (manifest.load.kind !== "search" && this.#scale !== null)
      commands.push({ kind: "scale", execution, factor: this.#scale });
    if (level !== null) commands.push({ kind: "level", execution, load: level });
    const pausing = this.#pausedAt === null ? "resume" : "pause";
    if (this.#wasPaused) commands.push({ kind: pausing, execution });
    if (ending) commands.push({ kind: "stop", execution });
    return commands;
  };
}
