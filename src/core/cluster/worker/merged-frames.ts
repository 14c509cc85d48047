/**
 * Frames of the cores of one job, merged by execution and flow (`merged-part.ts`), for a leader that supports it.
 * Frames that cannot be merged are relayed per core.
 */

import type { MergedFigures } from "../../load/job/core-messages.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import type { HeldFigures, RelayedCommand } from "../messages.ts";
import { type CoreFrame, MergedPart } from "./merged-part.ts";

/**
 * Executions and flows of a job that are merged at the same time, each with all its metrics. The oldest finished one is
 * evicted first.
 */
const MERGED_MAX = 32;

export class MergedFrames {
  readonly #errorKinds: number;
  /** By execution and flow, in insertion order. */
  readonly #parts = new Map<string, MergedPart>();
  /**
   * Executions and flows whose frames are relayed per core. The leader must get the calls of a core through one of both
   * ways only.
   */
  readonly #unmerged = new Set<string>();
  /** Workflow of each execution. */
  readonly #workflows = new Map<number, string>();
  readonly #manifests = new Map<string, WorkflowManifest>();

  constructor(errorKinds: number) {
    this.#errorKinds = errorKinds;
  }

  onLoaded(manifests: readonly WorkflowManifest[]): void {
    for (const manifest of manifests) this.#manifests.set(manifest.name, manifest);
  }

  onCommand(core: number, command: RelayedCommand, isMerging: boolean): void {
    if (command.kind === "prepare") this.#workflows.set(command.execution, command.workflow);
    if (command.kind !== "start" || !isMerging) return;
    const { execution } = command;
    const { parts = [] } = this.#manifests.get(this.#workflows.get(execution) ?? "") ?? {};
    const flows = parts.length === 0 ? [null] : parts.map(({ name }) => name);
    for (const flow of flows) this.#part(execution, flow)?.attach(core);
  }

  /** Returns the last retained frame of the core; null if it is not merged here. */
  take(core: number, frame: CoreFrame, now: number): number | null {
    return this.#part(frame.execution, frame.part)?.take(core, frame, now) ?? null;
  }

  /** Returns false if this execution and flow is not merged. */
  acknowledged({ execution, frame, part }: HeldFigures): boolean {
    const merged = this.#parts.get(keyOf(execution, part));
    merged?.acknowledged(frame);
    return merged !== undefined;
  }

  /** Stops waiting for a core: it has finished this execution, or all of them if null. */
  ended(core: number, execution: number | null): void {
    for (const [key, part] of this.#parts)
      if (execution === null || key.startsWith(`${execution} `)) part.ended(core);
  }

  /** When the next merged frame is due; infinite if there is nothing to send. */
  get dueAt(): number {
    let at = Number.POSITIVE_INFINITY;
    for (const part of this.#parts.values()) at = Math.min(at, part.dueAt);
    return at;
  }

  /** Returns the merged frames that are due. */
  due(now: number): readonly MergedFigures[] {
    const due: MergedFigures[] = [];
    for (const part of this.#parts.values()) {
      const next = part.next(now);
      if (next !== null) due.push(next);
    }
    return due;
  }

  /** Returns unreported metrics of a core, which must precede the event of its end. */
  news(core: number, now: number): readonly MergedFigures[] {
    return [...this.#parts.values()]
      .filter((part) => part.hasNews && part.has(core))
      .map((part) => part.write(now));
  }

  /** A new leader has no state, so every execution may be merged again. */
  forgetUnmerged(): void {
    this.#unmerged.clear();
  }

  /** Returns everything merged so far, for a new leader. */
  restart(now: number): readonly MergedFigures[] {
    return [...this.#parts.values()]
      .filter((part) => part.restart())
      .map((part) => part.write(now));
  }

  /** Frames are relayed per core from now on. */
  clear(): void {
    this.#parts.clear();
    this.#unmerged.clear();
  }

  #part(execution: number, flow: string | null): MergedPart | null {
    const key = keyOf(execution, flow);
    const known = this.#parts.get(key);
    if (known !== undefined || this.#unmerged.has(key)) return known ?? null;
    const { corrected } = this.#manifestOf(execution, flow) ?? {};
    if (corrected === undefined || !this.#hasRoom()) {
      this.#unmerged.add(key);
      return null;
    }
    const made = new MergedPart(execution, flow, { errorKinds: this.#errorKinds, corrected });
    this.#parts.set(key, made);
    return made;
  }

  #manifestOf(execution: number, flow: string | null): WorkflowManifest | undefined {
    const whole = this.#manifests.get(this.#workflows.get(execution) ?? "");
    return flow === null ? whole : whole?.parts.find(({ name }) => name === flow);
  }

  #hasRoom(): boolean {
    if (this.#parts.size < MERGED_MAX) return true;
    const [over] = [...this.#parts].find(([, part]) => part.isOver) ?? [];
    if (over === undefined) return false;
    this.#unmerged.add(over);
    return this.#parts.delete(over);
  }
}

function keyOf(execution: number, flow: string | null): string {
  return `${execution} ${flow ?? ""}`;
}
