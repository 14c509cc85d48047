/**
 * Controls of a run: by users, and by agreed searches and ends. Workflows that begin later start with them, and they
 * can be repeated for a core that missed some: all values are absolute.
 */

import { assertNever } from "../../base/assert.ts";
import type { CoreCommand } from "../job/core-messages.ts";
import type { PhasesInput } from "./phase-types.ts";
import {
  type CoreOrder,
  loadingCommands,
  type Running,
  type RunningWorkflows,
  type Steered,
} from "./running.ts";

export type SteeringInput = Extract<PhasesInput, { kind: "pause" | "resume" | "scale" | "level" }>;

export class Steering {
  readonly #running: RunningWorkflows;
  /** Start of the pause, by the driver's clock; null when not paused. */
  #pausedAt: number | null = null;
  /** The run was paused before: a core may not have received the resume. */
  #wasPaused = false;
  /** Scale factor of the plan; null: never changed. */
  #scale: number | null = null;

  constructor(running: RunningWorkflows) {
    this.#running = running;
  }

  get pausedAt(): number | null {
    return this.#pausedAt;
  }

  take(input: SteeringInput, now: number): readonly CoreOrder[] {
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

  /** Excludes the time of the pause from the plan. */
  #resume(now: number): readonly CoreOrder[] {
    const pausedMs = now - (this.#pausedAt ?? now);
    this.#pausedAt = null;
    for (const running of this.#loading()) running.startedAt += pausedMs;
    return this.#tellAll("resume");
  }

  #scaleTo(factor: number): readonly CoreOrder[] {
    this.#scale = factor;
    return this.#loading()
      .filter(({ manifest }) => manifest.load.kind !== "search")
      .flatMap((running) =>
        loadingCommands(running, (execution) => ({ kind: "scale", execution, factor })),
      );
  }

  #level(workflow: string, load: number): readonly CoreOrder[] {
    const running = this.#running.get(workflow);
    if (running?.phase !== "running") return [];
    running.level = load;
    return loadingCommands(running, (execution) => ({ kind: "level", execution, load }));
  }

  #loading(): Running[] {
    return [...this.#running].flatMap(([, one]) => (one.phase === "running" ? [one] : []));
  }

  #tellAll(kind: "pause" | "resume"): readonly CoreOrder[] {
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
