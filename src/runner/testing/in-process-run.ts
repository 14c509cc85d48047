/**
 * A run with every part but the processes: the real manager and real executor cores in one event
 * loop, their messages copied and delivered in a later turn as a pipe would. Core counts are small
 * and the load short, so that tests can look at every message.
 */

import type { CoreCommand, CoreEvent } from "../../core/run/job/core-messages.ts";
import { CountedNotes } from "../../core/run/job/counted-notes.ts";
import { JobRunner } from "../../core/run/job/execution.ts";
import type { WorkflowManifest } from "../../core/run/job/manifest.ts";
import { slotsOf } from "../../core/run/job/slots.ts";
import type { LiveRun } from "../../core/run/results/live.ts";
import type { RunSummary } from "../../core/run/results/model.ts";
import { RunAggregate } from "../../core/run/results/run-aggregate.ts";
import { measuredOf, WorkflowAggregate } from "../../core/run/results/workflow-aggregate.ts";
import { StepTotals } from "../../core/run/stats/step-stats.ts";
import { Core } from "../../engine/core.ts";
import { ERROR_KINDS } from "../../protocols/protocol.ts";
import type { WorkflowDefinition } from "../../workflow/definition.ts";
import type { LoadOverrides } from "../../workflow/overrides.ts";
import { onTheTable } from "./table.ts";

interface InProcessOptions {
  /** Of the machine; there are as many executor cores as the workflows need. */
  readonly cores?: number;
  readonly overrides?: LoadOverrides;
  /** Of the whole run, as from the command line. */
  readonly thresholds?: readonly string[];
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
  readonly #notes: string[] = [];
  readonly #counted = new CountedNotes();
  /** Name, status and error of each workflow, in the order they ended. */
  readonly ended: [string, string, string | null][] = [];
  readonly events: { readonly core: number; readonly event: CoreEvent }[] = [];
  readonly workflows = new Map<string, WorkflowAggregate>();
  readonly #lost = new Set<number>();
  readonly #startedAt = performance.now();
  #manifests: readonly WorkflowManifest[] = [];
  #aggregate: RunAggregate | undefined;
  #judging: NodeJS.Timeout | undefined;
  #job: JobRunner | undefined;
  #done: () => void = () => {};
  /** Resolves when the job is over. */
  readonly done = new Promise<void>((resolve) => {
    this.#done = resolve;
  });
  #loaded: ((event: CoreEvent) => void) | undefined;

  /** What the cores remarked. */
  get notes(): string[] {
    return [...this.#notes, ...this.#counted.texts];
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

  /** Starts, and waits for the end. */
  static async whole(
    workflows: Written | readonly Written[],
    options: InProcessOptions = {},
  ): Promise<InProcessRun> {
    const run = await InProcessRun.start(workflows, options);
    await run.done;
    return run;
  }

  async #load({ cores = 1, overrides = {}, thresholds = [] }: InProcessOptions): Promise<void> {
    const bundle = new URL(`./bundle.ts?run=${runs++}`, import.meta.url).href;
    const folder = process.cwd();
    let slots = 1;
    for (let core = 0; core < slots; core++) {
      this.cores.push(new Core((event) => this.#heard(core, event)));
      const loaded = await new Promise<CoreEvent>((resolve) => {
        this.#loaded = resolve;
        this.cores[core]?.handle({ kind: "load", bundle, folder, overrides, core });
      });
      if (loaded.kind !== "loaded") throw new Error(JSON.stringify(loaded));
      if (core > 0) continue;
      slots = slotsOf(loaded.manifests, cores);
      this.#manifests = loaded.manifests;
      for (const one of measuredOf(loaded.manifests))
        this.workflows.set(one.name, new WorkflowAggregate(one));
    }
    const aggregate = this.#newAggregate(slots, thresholds);
    this.#aggregate = aggregate;
    this.#job = this.#newJob(cores, aggregate);
    this.#judging = setInterval(() => {
      const { abort, searches } = aggregate.decide();
      for (const { command, workflow } of searches) {
        if (command.kind === "level") this.#job?.level(workflow, command.load);
        else this.#job?.finish(workflow);
      }
      if (abort) this.#job?.stop();
    }, aggregate.judgeEveryMs);
    this.#job.start();
  }

  #newAggregate(cores: number, thresholds: readonly string[]): RunAggregate {
    const none = { hyperscale: "0", node: "", platform: "", cpuModel: "", command: "" };
    return new RunAggregate({
      runId: "run",
      name: "in process",
      tags: {},
      manifests: this.#manifests,
      thresholds,
      abortAfterMs: null,
      environment: { ...none, cpus: cores, cores },
      now: () => performance.now() - this.#startedAt,
    });
  }

  #newJob(pool: number, aggregate: RunAggregate): JobRunner {
    return new JobRunner(
      this.#manifests,
      { slots: this.cores.map((_, core) => core), pool },
      {
        send: (core, command) => this.#send(core, command),
        now: () => performance.now(),
        log: (line) => this.logs.push(line),
        abort: () => this.#job?.stop(),
        problem: () => undefined,
        done: () => {
          clearInterval(this.#judging);
          this.#done();
        },
      },
      {
        workflowBusy: (name, doing) => aggregate.workflowBusy(name, doing),
        workflowStarted: (name, members) => {
          this.workflows.get(name)?.started(members, performance.now());
          aggregate.workflowStarted(name, members);
        },
        frame: (name, core, bytes, health) => {
          this.workflows.get(name)?.frame(core, bytes, health);
          return aggregate.frame(name, core, bytes, health);
        },
        coreFinished: (name, core) => {
          this.workflows.get(name)?.coreEnded(core);
          aggregate.coreFinished(name, core);
        },
        workflowFinished: (name, status, error) => {
          this.ended.push([name, status, error]);
          aggregate.workflowFinished(name, status, error);
        },
        workflowSkipped: (name, becauseOf) => {
          this.ended.push([name, "not run", becauseOf]);
          aggregate.workflowSkipped(name, becauseOf);
        },
        fault: (name, fault) => aggregate.fault(name, fault),
        note: (text) => {
          this.#notes.push(text);
          aggregate.note(text);
        },
        countedNote: (note) => {
          this.#counted.add(note);
          aggregate.countedNote(note);
        },
      },
    );
  }

  #send(core: number, command: CoreCommand): void {
    const copy = structuredClone(command);
    setImmediate(() => {
      if (!this.#lost.has(core)) this.cores[core]?.handle(copy);
    });
  }

  #heard(core: number, event: CoreEvent): void {
    const copy = structuredClone(event);
    this.events.push({ core, event: copy });
    setImmediate(() => {
      if (this.#lost.has(core)) return;
      if (copy.kind === "loaded" || copy.kind === "loadFailed") this.#loaded?.(copy);
      else this.#job?.onEvent(core, copy);
    });
  }

  stop(): void {
    this.#job?.stop();
  }
  pause(): void {
    this.#job?.steer("pause");
    this.#aggregate?.paused();
  }
  resume(): void {
    this.#job?.steer("resume");
    this.#aggregate?.resumed();
  }
  scale(factor: number): void {
    this.#job?.scale(factor);
    this.#aggregate?.scaled(factor);
  }
  /** As when the core's process is killed: nothing more is heard of it. */
  lose(core: number): void {
    this.#lost.add(core);
    this.#aggregate?.coreLost(core, `executor core ${core} ended`);
    this.#job?.coreLost(core);
  }

  /** What a terminal would show now. */
  live(): LiveRun {
    if (this.#aggregate === undefined) throw new Error("the run has not begun");
    return this.#aggregate.live(this.#aggregate.anyStarted ? "running" : "starting");
  }

  /** What the run would write down. */
  summary(): RunSummary {
    if (this.#aggregate === undefined) throw new Error("the run has not begun");
    return this.#aggregate.summary({ interrupted: false, ended: true });
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

/** Waits for something that happens soon, however busy the machine is. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
