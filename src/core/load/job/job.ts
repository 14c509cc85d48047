/**
 * A job as a pure machine: which workflow runs when, on which cores, with which context, and what
 * becomes of the rest when something fails, is lost or is stopped.
 *
 *   layer 0              layer 1            A layer begins when every workflow of the one before is
 *   ┌ setup ┐            ┌ validate ┐       final (LAYER-2). Inside a layer, workflows that measure
 *   ├ high, low, high ───┤          ├ …     nothing start first on one core each; test workflows
 *   └ (or batches)       └          ┘       start together where there are cores for all of them,
 *                                           else batch by batch as cores come free (C30-22).
 *
 * A workflow with a delay begins so long after its layer. While the job is paused nothing begins
 * and no delay passes.
 *
 * A workflow is final when each of its cores has reported or is lost; the worst report counts
 * (C30-6). Losing some of its cores does not fail it, losing all of them does. A failed workflow
 * takes with it those that depend on it and no others (LAYER-7). Nothing is retried here (RES-5).
 *
 * A driver that misses signs of life from a core says `coreLost`; it says `tick` at `nextDeadline`.
 */

import { assert } from "../../base/assert.ts";
import { planVusMax } from "../plan/load.ts";
import { ContextStore, type ContextView, contextFor } from "./context.ts";
import { descendantsOf, type GraphNode, layersOf } from "./graph.ts";
import type { WorkflowManifest } from "./manifest.ts";
import { type Batch, partition, sideBySide, threadRange } from "./partition.ts";
import { provision } from "./provision.ts";
import { slotsOfLayer } from "./slots.ts";

type JobInput =
  | { readonly kind: "start" }
  /** The core is lost for good; `awaited`: its share is kept for another core, which may replace it. */
  | { readonly kind: "coreLost"; readonly core: number; readonly awaited?: boolean }
  /** Another core replaces a lost one, with the share that was kept for it. */
  | { readonly kind: "coreJoined"; readonly core: number; readonly instead: number }
  /** No other core replaces the lost one. */
  | { readonly kind: "coreForgone"; readonly core: number }
  /** Workflows on a lost core continue without the share that might have been kept for another. */
  | { readonly kind: "shareLost"; readonly core: number }
  | {
      readonly kind: "executionFinished";
      readonly workflow: string;
      readonly core: number;
      readonly outcome: ExecutionOutcome;
    }
  /** The placement was decided before: it runs there, whatever would be chosen now. */
  | { readonly kind: "place"; readonly workflow: string; readonly cores: readonly number[] }
  /** A delay may be over. */
  | { readonly kind: "tick" }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** End running workflows gracefully, and begin no more. */
  | { readonly kind: "stop" };

export type ExecutionOutcome =
  | { readonly ok: true; readonly contextUpdates: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly error: string };

export type JobEffect =
  | {
      readonly kind: "dispatch";
      readonly workflow: string;
      readonly cores: readonly number[];
      /** Virtual users of each of these cores. */
      readonly users: readonly number[];
      readonly context: ContextView;
    }
  /** Answer to `stop`: these cores are to end this workflow and report it finished. */
  | { readonly kind: "stopWorkflow"; readonly workflow: string; readonly cores: readonly number[] }
  | {
      readonly kind: "finishWorkflow";
      readonly workflow: string;
      readonly status: "completed" | "failed" | "interrupted";
      readonly error: string | null;
    }
  /** Never begun: because a workflow it depends on failed, or (null) because the job was stopped. */
  | { readonly kind: "skip"; readonly workflow: string; readonly becauseOf: string | null }
  | { readonly kind: "jobDone"; readonly status: JobStatus };

export type JobStatus = "completed" | "failed" | "partial" | "interrupted";

interface JobWorkflowView {
  readonly name: string;
  readonly layer: number;
  readonly status: "waiting" | "running" | "completed" | "failed" | "interrupted" | "not run";
  /** Assigned cores; empty while it waits. */
  readonly cores: readonly number[];
  readonly lostCores: readonly number[];
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly error: string | null;
}

interface Entry {
  readonly manifest: WorkflowManifest;
  readonly layer: number;
  status: JobWorkflowView["status"];
  cores: readonly number[];
  /** Cores that have not reported yet. */
  readonly pending: Set<number>;
  readonly lost: Set<number>;
  /** At least one core reported success. */
  succeeded: boolean;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

export class Job {
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #nodes: readonly GraphNode[];
  readonly #layers: readonly (readonly string[])[];
  readonly #live: Set<number>;
  /** Lost cores that another may replace. */
  readonly #awaited = new Set<number>();
  /** Core → workflow that uses it. */
  readonly #held = new Map<number, string>();
  readonly #context = new ContextStore();
  /** Test batches of the current layer that still have a waiting member, in order. */
  #batches: readonly Batch[] = [];
  /** The batches of this layer are meant to run at the same time. */
  #together = false;
  /** Cores of the machine; more may be live, when they are processes. */
  readonly #pool: number;
  #layer = -1;
  #layerBeganAt = 0;
  #pausedAt: number | null = null;
  #started = false;
  #stopping = false;
  #done = false;
  #effects: JobEffect[] = [];
  #now = 0;

  /** The manifests were validated: names are unique, dependencies known and acyclic. */
  constructor(
    manifests: readonly WorkflowManifest[],
    cores: readonly number[],
    pool = cores.length,
  ) {
    assert(pool >= 1, "a machine has a core");
    this.#pool = pool;
    assert(manifests.length > 0, "a job has a workflow");
    assert(new Set(cores).size === cores.length && cores.length > 0, "a job has distinct cores");
    this.#nodes = manifests.map(({ name, dependsOn }) => ({ name, after: dependsOn }));
    const order = layersOf(this.#nodes, "workflow");
    assert(order.ok, "manifests are validated before they become a job");
    this.#layers = order.layers;
    const layerOf = new Map(order.layers.flatMap((names, at) => names.map((name) => [name, at])));
    this.#entries = new Map(
      manifests.map((manifest) => [
        manifest.name,
        entry(manifest, layerOf.get(manifest.name) ?? 0),
      ]),
    );
    this.#live = new Set(cores);
  }

  /** Total: ignores unexpected, late and repeated inputs. */
  step(input: JobInput, now: number): readonly JobEffect[] {
    this.#effects = [];
    this.#now = now;
    switch (input.kind) {
      case "start":
        this.#started = true;
        break;
      case "coreLost":
        this.#onCoreLost(input.core, input.awaited === true);
        break;
      case "coreJoined":
        this.#onCoreJoined(input.core, input.instead);
        break;
      case "coreForgone":
        this.#awaited.delete(input.core);
        this.#loseShare(input.core);
        break;
      case "shareLost":
        this.#loseShare(input.core);
        break;
      case "executionFinished":
        this.#onFinished(input.workflow, input.core, input.outcome);
        break;
      case "place":
        this.#onPlace(input.workflow, input.cores);
        break;
      case "tick":
        break;
      case "pause":
        this.#pausedAt ??= now;
        break;
      case "resume":
        if (this.#pausedAt !== null) this.#layerBeganAt += now - this.#pausedAt;
        this.#pausedAt = null;
        break;
      case "stop":
        this.#onStop();
        break;
    }
    if (this.#started) this.#proceed();
    return this.#effects;
  }

  /** When the next delay is over; null when none runs. */
  nextDeadline(): number | null {
    if (this.#pausedAt !== null || this.#done) return null;
    let next = Number.POSITIVE_INFINITY;
    for (const name of this.#layers[this.#layer] ?? []) {
      const one = this.#entries.get(name);
      const at = one?.status === "waiting" ? this.#dueAt(one) : this.#now;
      if (at > this.#now) next = Math.min(next, at);
    }
    return next === Number.POSITIVE_INFINITY ? null : next;
  }

  #dueAt(one: Entry): number {
    return this.#layerBeganAt + one.manifest.startAfterMs;
  }

  snapshot(): readonly JobWorkflowView[] {
    return [...this.#entries.values()].map((one) => ({
      name: one.manifest.name,
      layer: one.layer,
      status: one.status,
      cores: one.cores,
      lostCores: [...one.lost],
      startedAt: one.startedAt,
      finishedAt: one.finishedAt,
      error: one.error,
    }));
  }

  #onCoreLost(core: number, awaited: boolean): void {
    if (!this.#live.delete(core)) return;
    this.#held.delete(core);
    if (awaited) this.#awaited.add(core);
    else this.#loseShare(core);
  }

  #onCoreJoined(core: number, instead: number): void {
    if (!this.#awaited.delete(instead)) return;
    this.#live.add(core);
    for (const one of this.#entries.values()) {
      if (!one.pending.delete(instead)) continue;
      one.lost.add(instead);
      one.pending.add(core);
      one.cores = [...one.cores, core];
      this.#held.set(core, one.manifest.name);
    }
  }

  #loseShare(core: number): void {
    for (const one of this.#entries.values()) {
      if (!one.pending.has(core)) continue;
      one.lost.add(core);
      this.#held.delete(core);
      this.#settle(one, core);
    }
  }

  #onPlace(workflow: string, cores: readonly number[]): void {
    const one = this.#entries.get(workflow);
    if (one === undefined || (one.status !== "waiting" && one.status !== "running")) return;
    for (const core of one.pending) this.#held.delete(core);
    one.pending.clear();
    const { isTest, load } = one.manifest;
    const users = isTest ? provision(Math.max(1, planVusMax(load)), cores.length) : [1];
    this.#begin(one, cores, users);
    for (const core of cores.filter((other) => !this.#live.has(other))) {
      this.#held.delete(core);
      if (!this.#awaited.has(core)) this.#loseShare(core);
    }
  }

  #onFinished(workflow: string, core: number, outcome: ExecutionOutcome): void {
    const one = this.#entries.get(workflow);
    if (one === undefined || !one.pending.has(core)) return;
    this.#held.delete(core);
    if (outcome.ok) {
      one.succeeded = true;
      this.#keepContext(one, core, outcome.contextUpdates);
    } else {
      one.error ??= outcome.error;
    }
    this.#settle(one, core);
  }

  /**
   * All parts of a workflow write at the same logical time, its layer, so that the result does not
   * depend on which core happened to report last: the highest source wins (CCP-12).
   */
  #keepContext(one: Entry, core: number, updates: Readonly<Record<string, unknown>>): void {
    const source = `core-${String(core).padStart(6, "0")}`;
    for (const [key, value] of Object.entries(updates)) {
      if (value === undefined) continue;
      this.#context.apply(one.manifest.name, key, { value, timestamp: one.layer + 1, source });
    }
  }

  #settle(one: Entry, core: number): void {
    one.pending.delete(core);
    if (one.status !== "running" || one.pending.size > 0) return;
    if (one.error !== null) this.#finish(one, "failed", one.error);
    else if (one.succeeded) this.#finish(one, this.#stopping ? "interrupted" : "completed", null);
    else this.#finish(one, "failed", lostText(one));
  }

  #finish(one: Entry, status: "completed" | "failed" | "interrupted", error: string | null): void {
    one.status = status;
    one.error = error;
    one.finishedAt = this.#now;
    const workflow = one.manifest.name;
    this.#effects.push({ kind: "finishWorkflow", workflow, status, error });
    if (status !== "failed") return;
    for (const name of descendantsOf(workflow, this.#nodes)) {
      const descendant = this.#entries.get(name);
      if (descendant?.status === "waiting") this.#skip(descendant, workflow);
    }
  }

  #skip(one: Entry, becauseOf: string | null): void {
    one.status = "not run";
    one.error = becauseOf === null ? null : `not run because "${becauseOf}" failed`;
    this.#effects.push({ kind: "skip", workflow: one.manifest.name, becauseOf });
  }

  #onStop(): void {
    if (this.#stopping || this.#done) return;
    this.#started = true;
    this.#stopping = true;
    for (const one of this.#entries.values()) {
      if (one.status === "waiting") this.#skip(one, null);
      if (one.status !== "running") continue;
      const workflow = one.manifest.name;
      this.#effects.push({ kind: "stopWorkflow", workflow, cores: [...one.pending] });
    }
  }

  /** Starts whatever can start, moves to the next layer when this one is over, ends the job after the last. */
  #proceed(): void {
    while (!this.#done) {
      const isEmpty = this.#live.size === 0;
      if (isEmpty && this.#awaited.size === 0) this.#failWaiting();
      const held = this.#pausedAt !== null && !this.#stopping;
      if (!this.#layerOver()) {
        if (!held) this.#schedule();
        return;
      }
      if (this.#layer + 1 >= this.#layers.length) {
        this.#done = true;
        this.#effects.push({ kind: "jobDone", status: this.#status() });
        return;
      }
      if (held || (isEmpty && this.#awaited.size > 0 && !this.#stopping)) return;
      this.#beginLayer(this.#layer + 1);
    }
  }

  #layerOver(): boolean {
    return this.#members().every(({ status }) => status !== "waiting" && status !== "running");
  }

  #beginLayer(layer: number): void {
    this.#layer = layer;
    this.#layerBeganAt = this.#now;
    const candidates = this.#members()
      .filter(({ status }) => status === "waiting")
      .map(({ manifest }) => manifest);
    if (candidates.length === 0 || this.#live.size === 0) return;
    const together = sideBySide(this.#livePool, candidates);
    this.#together = slotsOfLayer(together, candidates) <= this.#live.size;
    this.#batches = this.#together ? together : partition(this.#livePool, candidates);
  }

  get #livePool(): number {
    return Math.min(this.#pool, this.#live.size);
  }

  #schedule(): void {
    for (const batch of this.#batches) {
      for (const { name, threads } of batch) {
        const one = this.#entries.get(name);
        if (one !== undefined && this.#isDue(one)) this.#tryStart(one, threads);
      }
      // A later batch starts when no workflow of the earlier one waits for cores.
      const waits = batch.some(({ name, threads }) => {
        const one = this.#entries.get(name);
        return threads > 0 && one !== undefined && this.#isDue(one);
      });
      if (waits) return;
    }
  }

  #isDue(one: Entry): boolean {
    return one.status === "waiting" && this.#dueAt(one) <= this.#now;
  }

  #tryStart(one: Entry, threads: number): void {
    const alone = [...this.#held.values()].some(
      (name) => this.#entries.get(name)?.manifest.priority === "exclusive" && this.#isTest(name),
    );
    if (alone) return;
    const free = [...this.#live].filter((core) => !this.#held.has(core));
    const cores = one.manifest.isTest ? this.#coresFor(one, threads, free.length) : 1;
    if (cores === 0 || cores > free.length) return;
    const load = one.manifest.load;
    const users = one.manifest.isTest ? provision(Math.max(1, planVusMax(load)), cores) : [1];
    this.#begin(one, free.slice(0, users.length), users);
  }

  #begin(one: Entry, cores: readonly number[], users: readonly number[]): void {
    one.status = "running";
    one.startedAt = this.#now;
    one.cores = cores;
    for (const core of cores) {
      this.#held.set(core, one.manifest.name);
      one.pending.add(core);
    }
    const providers = [...this.#entries.values()].map(({ manifest }) => manifest);
    const context = contextFor(one.manifest, providers, this.#context);
    const workflow = one.manifest.name;
    this.#effects.push({ kind: "dispatch", workflow, cores, users, context });
  }

  /** How many cores a test workflow takes now; zero to wait. */
  #coresFor(one: Entry, threads: number, free: number): number {
    const { priority } = one.manifest;
    const pool = this.#livePool;
    const planned = Math.min(threads, this.#live.size);
    if (priority === "exclusive") return this.#held.size === 0 ? pool : 0;
    if (free >= planned) return planned;
    // Cores were lost since the layer began: fewer is better than later.
    if (this.#together) return free;
    const bypassed = [...this.#held.values()].some((name) => !this.#isTest(name));
    return bypassed && free >= threadRange(priority, pool).min ? free : 0;
  }

  #isTest(name: string): boolean {
    return this.#entries.get(name)?.manifest.isTest === true;
  }

  #failWaiting(): void {
    for (const one of this.#entries.values()) {
      if (one.status === "waiting")
        this.#finish(one, "failed", "no executor core is left to run it");
    }
  }

  #members(): Entry[] {
    return (this.#layers[this.#layer] ?? []).flatMap((name) => this.#entries.get(name) ?? []);
  }

  #status(): JobStatus {
    if (this.#stopping) return "interrupted";
    const all = [...this.#entries.values()];
    const completed = all.filter(({ status }) => status === "completed").length;
    if (completed === all.length) return "completed";
    return completed === 0 ? "failed" : "partial";
  }
}

function entry(manifest: WorkflowManifest, layer: number): Entry {
  return {
    manifest,
    layer,
    status: "waiting",
    cores: [],
    pending: new Set(),
    lost: new Set(),
    succeeded: false,
    error: null,
    startedAt: null,
    finishedAt: null,
  };
}

function lostText(one: Entry): string {
  const cores = [...one.lost].join(", ");
  return one.lost.size === 1
    ? `executor core ${cores}, which ran it, was lost`
    : `all executor cores that ran it (${cores}) were lost`;
}
