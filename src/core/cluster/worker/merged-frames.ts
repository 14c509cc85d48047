/**
 * What the cores of one job here have measured, merged by execution and flow (`merged-part.ts`), for a leader that
 * takes it so. What cannot be merged goes up as each core tells it.
 */

import type { MergedFigures } from "../../load/job/core-messages.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import type { HeldFigures, RelayedCommand } from "../messages.ts";
import { type CoreFrame, MergedPart } from "./merged-part.ts";

/**
 * Executions and flows of a job that are merged at once, each with all that was measured of it; the oldest that is
 * over makes room.
 */
const MERGED_MAX = 32;

export class MergedFrames {
  readonly #errorKinds: number;
  /** By execution and flow, in their order. */
  readonly #parts = new Map<string, MergedPart>();
  /** Those whose frames go up as each core tells them: the leader has the calls of a core from one of both only. */
  readonly #unmerged = new Set<string>();
  /** What executions are of. */
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

  /** The frame of the core that is held now; null when it is not merged here. */
  take(core: number, frame: CoreFrame, now: number): number | null {
    return this.#part(frame.execution, frame.part)?.take(core, frame, now) ?? null;
  }

  /** False when nothing of this execution and flow is merged. */
  acknowledged({ execution, frame, part }: HeldFigures): boolean {
    const merged = this.#parts.get(keyOf(execution, part));
    merged?.acknowledged(frame);
    return merged !== undefined;
  }

  /** Nobody waits for a core any more: it has ended this execution, or all that it did. */
  ended(core: number, execution: number | null): void {
    for (const [key, part] of this.#parts)
      if (execution === null || key.startsWith(`${execution} `)) part.ended(core);
  }

  /** When the next is due; infinite when nothing waits. */
  get dueAt(): number {
    let at = Number.POSITIVE_INFINITY;
    for (const part of this.#parts.values()) at = Math.min(at, part.dueAt);
    return at;
  }

  /** What is due now. */
  due(now: number): readonly MergedFigures[] {
    const due: MergedFigures[] = [];
    for (const part of this.#parts.values()) {
      const next = part.next(now);
      if (next !== null) due.push(next);
    }
    return due;
  }

  /** What a core has told and nobody above knows, before something is said that it must precede. */
  news(core: number, now: number): readonly MergedFigures[] {
    return [...this.#parts.values()]
      .filter((part) => part.hasNews && part.has(core))
      .map((part) => part.write(now));
  }

  /** Another leader holds nothing of it, merged or not. */
  forgetUnmerged(): void {
    this.#unmerged.clear();
  }

  /** All of it, for another leader. */
  restart(now: number): readonly MergedFigures[] {
    return [...this.#parts.values()]
      .filter((part) => part.restart())
      .map((part) => part.write(now));
  }

  /** The frames of cores go up as they are from now on. */
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
