/**
 * When each workflow was prepared, set up, under load and torn down, from the messages to and from the executor cores.
 * Reporters turn them into spans; a run without reporters records none.
 */

import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";
import type { WorkflowManifest } from "../core/load/job/manifest.ts";
import type { WorkflowPhase } from "../reporters/reporter.ts";

type PhaseName = WorkflowPhase["name"];

/** Which phase a command begins, and which one an event ends. */
const BEGINS: Readonly<Partial<Record<CoreCommand["kind"], PhaseName>>> = {
  prepare: "prepare",
  setup: "set-up",
  start: "load",
  teardown: "tear-down",
};
const ENDS: Readonly<Partial<Record<CoreEvent["kind"], PhaseName>>> = {
  prepared: "prepare",
  setupDone: "set-up",
  finished: "load",
  tornDown: "tear-down",
};
/** A warm-up and the stages of a plan that get spans; those beyond are part of the load alone. */
const STAGES_MAX = 100;

interface OpenPhase {
  readonly workflow: string;
  readonly name: PhaseName;
  readonly fromMs: number;
  /** End at the last core; it may still be under way. */
  toMs: number;
  problem: string | null;
}

/** One entry per workflow and phase: bounded by the content of the file. */
export class WorkflowPhases {
  readonly #manifests: ReadonlyMap<string, WorkflowManifest>;
  readonly #workflows = new Map<number, string>();
  readonly #phases = new Map<string, OpenPhase>();

  constructor(manifests: readonly WorkflowManifest[]) {
    this.#manifests = new Map(manifests.map((one) => [one.name, one]));
  }

  commandSent(command: CoreCommand, nowMs: number): void {
    const name = BEGINS[command.kind];
    if (name === undefined || !("execution" in command)) return;
    if (command.kind === "prepare") this.#workflows.set(command.execution, command.workflow);
    const workflow = this.#workflows.get(command.execution) ?? "";
    const key = `${name} ${workflow}`;
    // The first core begins it; others, and replacements of a lost one, belong to it.
    if (this.#phases.has(key)) return;
    this.#phases.set(key, { workflow, name, fromMs: nowMs, toMs: nowMs, problem: null });
  }

  eventReceived(event: CoreEvent, nowMs: number): void {
    if (event.kind === "failed") {
      for (const phase of this.#phasesOf(event.execution)) {
        phase.toMs = Math.max(phase.toMs, nowMs);
        phase.problem ??= event.problem.message;
      }
      return;
    }
    const name = ENDS[event.kind];
    if (name === undefined || !("execution" in event)) return;
    const phase = this.#phases.get(`${name} ${this.#workflows.get(event.execution) ?? ""}`);
    if (phase !== undefined) phase.toMs = nowMs;
  }

  /** The phase under way when an execution fails: the last to begin. */
  #phasesOf(execution: number): readonly OpenPhase[] {
    const workflow = this.#workflows.get(execution);
    return [...this.#phases.values()].filter((phase) => phase.workflow === workflow).slice(-1);
  }

  /** Phases until now. */
  list(nowMs: number): readonly WorkflowPhase[] {
    return [...this.#phases.values()].map((phase) => {
      const toMs = phase.toMs > phase.fromMs ? phase.toMs : nowMs;
      const stages = phase.name === "load" ? this.#stages(phase, toMs) : [];
      return { ...phase, toMs, stages };
    });
  }

  /** Stages as planned, up to the end of the load. */
  #stages({ fromMs, workflow }: OpenPhase, endMs: number): WorkflowPhase["stages"] {
    const manifest = this.#manifests.get(workflow);
    if (manifest === undefined || !("stages" in manifest.load)) return [];
    const { load, warmupMs } = manifest;
    const planned = load.stages.map(({ durationMs, from, to }) => ({
      durationMs,
      name: from === to ? `stage at ${to}` : `stage from ${from} to ${to}`,
    }));
    const all = warmupMs > 0 ? [{ durationMs: warmupMs, name: "warm-up" }, ...planned] : planned;
    const stages: { name: string; fromMs: number; toMs: number }[] = [];
    let at = fromMs;
    for (const { durationMs, name } of all.slice(0, STAGES_MAX)) {
      if (at >= endMs) break;
      stages.push({ name, fromMs: at, toMs: Math.min(at + durationMs, endMs) });
      at += durationMs;
    }
    return stages;
  }
}
