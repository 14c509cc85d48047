/**
 * A run with every part but the processes: the real manager and real executor cores in one event loop, their messages
 * copied and delivered in a later turn as a pipe would. Core counts are small and the load short, so that tests can
 * inspect every message.
 */

import { Agreement } from "../../core/load/execution/agreement.ts";
import { type RunInput, RunMachine } from "../../core/load/execution/run-machine.ts";
import type { CoreCommand, CoreEvent, CoreVitals } from "../../core/load/job/core-messages.ts";
import { type CountedNote, CountedNotes } from "../../core/load/job/counted-notes.ts";
import type { LoadOverrides } from "../../core/load/job/load-overrides.ts";
import type { WorkflowManifest } from "../../core/load/job/manifest.ts";
import { slotsOf } from "../../core/load/job/slots.ts";
import type { LiveRun } from "../../core/load/results/live.ts";
import type { RunSummary, WorkflowStatus } from "../../core/load/results/model.ts";
import { RunAggregate } from "../../core/load/results/run-aggregate.ts";
import { measuredOf, WorkflowAggregate } from "../../core/load/results/workflow-aggregate.ts";
import { StepTotals } from "../../core/load/stats/step-stats.ts";
import { Core } from "../../engine/core.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import type { WorkflowDefinition } from "../../workflow/definition.ts";
import { onTheTable } from "./table.ts";

/** As in the process that starts cores: workflows cannot replace them. */
const { setImmediate, setTimeout } = globalThis;

interface InProcessOptions {
  /** Cores of the machine; there are as many executor cores as the workflows need. */
  readonly cores?: number;
  readonly overrides?: LoadOverrides;
  /** Thresholds of the whole run, as from the command line. */
  readonly thresholds?: readonly string[];
  /** Delay of each block of rows or iterations, as over a network. */
  readonly leaseMs?: number;
}

interface StepFigures {
  readonly requests: number;
  readonly ok: number;
  readonly failed: number;
  readonly interrupted: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly totals: StepTotals;
}

type Written = { readonly definition: WorkflowDefinition };

let runs = 0;

export class InProcessRun {
  readonly cores: Core[] = [];
  readonly logs: string[] = [];
  readonly noted: string[] = [];
  readonly counted = new CountedNotes();
  /** Name, status and error of each workflow, in the order they finished. */
  readonly ended: [string, string, string | null][] = [];
  readonly events: { readonly core: number; readonly event: CoreEvent }[] = [];
  readonly workflows = new Map<string, WorkflowAggregate>();
  readonly #lost = new Set<number>();
  readonly #startedAt = performance.now();
  #manifests: readonly WorkflowManifest[] = [];
  #machine: RunMachine | undefined;
  #timer: NodeJS.Timeout | undefined;
  #leaseMs = 0;
  #done: () => void = () => {};
  /** Resolves when the job is over. */
  readonly done = new Promise<void>((resolve) => {
    this.#done = resolve;
  });
  #loaded: ((event: CoreEvent) => void) | undefined;

  /** Notes of the cores. */
  get notes(): string[] {
    return [...this.noted, ...this.counted.texts];
  }

  static async start(
    workflows: Written | readonly Written[],
    options: InProcessOptions = {},
  ): Promise<InProcessRun> {
    const run = new InProcessRun();
    onTheTable.splice(0, Infinity, ...("definition" in workflows ? [workflows] : workflows));
    await run.#load(options);
    return run;
  }

  /** Runs to the end. */
  static async whole(
    workflows: Written | readonly Written[],
    options: InProcessOptions = {},
  ): Promise<InProcessRun> {
    const run = await InProcessRun.start(workflows, options);
    await run.done;
    return run;
  }

  async #load(options: InProcessOptions): Promise<void> {
    const { cores = 1, leaseMs = 0, overrides = {}, thresholds = [] } = options;
    this.#leaseMs = leaseMs;
    const bundle = new URL(`./bundle.ts?run=${runs++}`, import.meta.url).href;
    const folder = process.cwd();
    let slots = 1;
    for (let core = 0; core < slots; core++) {
      this.cores.push(new Core((event) => this.#received(core, event)));
      const loaded = await new Promise<CoreEvent>((resolve) => {
        this.#loaded = resolve;
        this.cores[core]?.handle({ kind: "load", bundle, folder, overrides, core });
      });
      if (loaded.kind !== "loaded") throw new Error(JSON.stringify(loaded));
      if (core > 0) continue;
      slots = slotsOf(loaded.manifests, cores);
      this.#manifests = loaded.manifests;
      for (const one of measuredOf(loaded.manifests))
        this.workflows.set(one.name, new WorkflowAggregate(one, ERROR_KINDS));
    }
    const aggregate = this.#newAggregate(slots, thresholds);
    this.#machine = new RunMachine({
      manifests: this.#manifests,
      cores: { slots: this.cores.map((_, core) => core), pool: cores },
      aggregate,
      agreement: new Agreement(this.#manifests),
      timeoutMs: null,
      limited: false,
      beganAt: this.#startedAt,
    });
    this.#take({ kind: "start" });
  }

  #newAggregate(cores: number, thresholds: readonly string[]): RunAggregate {
    const none = { hyperscale: "0", node: "", platform: "", cpuModel: "", command: "" };
    return new WatchedAggregate(
      {
        runId: "run",
        name: "in process",
        tags: {},
        manifests: this.#manifests,
        thresholds,
        abortAfterMs: null,
        errorKinds: ERROR_KINDS,
        environment: { ...none, cpus: cores, cores },
        startedAt: new Date(Date.now() - performance.now() + this.#startedAt).toISOString(),
      },
      this,
    );
  }

  #take(input: RunInput): void {
    const machine = this.#machine;
    if (machine === undefined) return;
    for (const effect of machine.step(input, performance.now())) {
      if (effect.kind === "send") this.#send(effect.core, effect.command);
      if (effect.kind === "message") this.logs.push(effect.line);
      if (effect.kind === "done") this.#done();
    }
    clearTimeout(this.#timer);
    const deadline = machine.nextDeadline();
    if (deadline === null) return;
    const waitMs = Math.max(1, deadline - performance.now());
    this.#timer = setTimeout(() => this.#take({ kind: "tick" }), waitMs);
  }

  #send(core: number, command: CoreCommand): void {
    const copy = structuredClone(command);
    const deliver = (): void => {
      if (!this.#lost.has(core)) this.cores[core]?.handle(copy);
    };
    if (copy.kind === "lease" && this.#leaseMs > 0) setTimeout(deliver, this.#leaseMs);
    else setImmediate(deliver);
  }

  #received(core: number, event: CoreEvent): void {
    const copy = structuredClone(event);
    this.events.push({ core, event: copy });
    setImmediate(() => {
      if (this.#lost.has(core)) return;
      if (copy.kind === "loaded" || copy.kind === "loadFailed") this.#loaded?.(copy);
      else this.#take({ kind: "event", core, event: copy });
    });
  }

  stop(): void {
    this.#take({ kind: "control", control: { kind: "stop" } });
  }
  pause(): void {
    this.#take({ kind: "control", control: { kind: "pause" } });
  }
  resume(): void {
    this.#take({ kind: "control", control: { kind: "resume" } });
  }
  scale(factor: number): void {
    this.#take({ kind: "control", control: { kind: "scale", factor } });
  }
  /** Simulates a killed process: the core sends nothing more. */
  lose(core: number): void {
    this.#lost.add(core);
    this.#take({ kind: "coreLost", core, what: `executor core ${core} ended` });
  }

  /** Current state for a terminal. */
  live(): LiveRun {
    return this.#begun.live(performance.now());
  }

  /** Summary of the run. */
  summary(): RunSummary {
    return this.#begun.summary();
  }

  get #begun(): RunMachine {
    if (this.#machine === undefined) throw new Error("the run has not begun");
    return this.#machine;
  }

  workflow(name: string): WorkflowAggregate {
    const workflow = this.workflows.get(name);
    if (workflow === undefined) throw new Error(`there is no workflow ${name}`);
    return workflow;
  }

  step(workflow: string, name: string): StepFigures {
    const found = this.workflow(workflow)
      .data()
      .steps.find((one) => one.name === name);
    const totals = found?.totals ?? new StepTotals(ERROR_KINDS.length, false);
    const errors = Object.fromEntries(
      ERROR_KINDS.map((kind, at) => [kind, totals.failed[at] ?? 0] as const).filter(
        ([, n]) => n > 0,
      ),
    );
    const { failedCount: failed, interrupted, ok, requests } = totals;
    return { requests, ok, failed, interrupted, errors, totals };
  }
}

/** Aggregate of a run, with what tests check separately. */
class WatchedAggregate extends RunAggregate {
  readonly #run: InProcessRun;

  constructor(options: ConstructorParameters<typeof RunAggregate>[0], run: InProcessRun) {
    super(options);
    this.#run = run;
  }

  override workflowStarted(name: string, cores: readonly number[]): void {
    this.#run.workflows.get(name)?.started(cores, performance.now());
    super.workflowStarted(name, cores);
  }

  override frame(name: string, core: number, bytes: Uint8Array, vitals: CoreVitals): number {
    this.#run.workflows.get(name)?.frame(core, bytes, vitals, performance.now());
    return super.frame(name, core, bytes, vitals);
  }

  override coreFinished(name: string, core: number): void {
    this.#run.workflows.get(name)?.coreEnded(core);
    super.coreFinished(name, core);
  }

  override workflowFinished(name: string, status: WorkflowStatus, error: string | null): void {
    // Workflows that never ran arrive here, too.
    if (status !== "not run") this.#run.ended.push([name, status, error]);
    super.workflowFinished(name, status, error);
  }

  override workflowSkipped(name: string, becauseOf: string | null): void {
    this.#run.ended.push([name, "not run", becauseOf]);
    super.workflowSkipped(name, becauseOf);
  }

  override note(text: string): void {
    this.#run.noted.push(text);
    super.note(text);
  }

  override countedNote(note: CountedNote): void {
    this.#run.counted.add(note);
    super.countedNote(note);
  }
}

/** Waits for a condition, however busy the machine is. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
