/**
 * An executor core of a simulated worker: the commands and events of a real one over the real recorder, leases and
 * retries, with its own count of everything it does. It is a separate process: it continues while its worker is paused,
 * and dies with it.
 */

import { assertNever } from "../../src/core/base/assert.ts";
import type { Random } from "../../src/core/base/random.ts";
import {
  type CoreCommand,
  type CoreEvent,
  feedLease,
} from "../../src/core/load/job/core-messages.ts";
import type { WorkflowManifest } from "../../src/core/load/job/manifest.ts";
import { type PlanPart, planDurationMs, plannedArrivals } from "../../src/core/load/plan/load.ts";
import { rowsOf } from "../../src/core/load/plan/split.ts";
import { StatsRecorder } from "../../src/core/load/stats/stats-recorder.ts";
import { WINDOW_MS } from "../../src/core/load/stats/window-store.ts";
import { IndexLease, type LeaseRequester, ticketLease } from "../../src/engine/leases.ts";
import { OpenRequests } from "../../src/engine/open-requests.ts";
import { Repeats } from "../../src/engine/repeats.ts";
import { timeIsUpFault } from "../../src/engine/time-is-up.ts";
import type { World } from "../kernel/world.ts";
import type { Committed } from "./committed.ts";
import { Freezer } from "./freezer.ts";
import { type Behaviour, type Bundle, bundleOf } from "./jobs.ts";
import type { CoreTruth, Truth } from "./truth.ts";

export const ERROR_KINDS = ["timeout", "status"] as const;
/** Interval between two frames; a real core sends ten a second. */
export const TICK_MS = 500;
const LOAD_MS_MAX = 300;
const PREPARE_MS_MAX = 60;
const ROW_BLOCKS = { size: 16, sizeMax: 64 };
const NUMBERS_PER_BLOCK = 3;
const ASK_EVERY_MS = 4 * TICK_MS;
const VITALS = { cpu: 0.1, residentBytes: 1, activeUsers: 1 };

type Prepare = Extract<CoreCommand, { kind: "prepare" }>;

interface CoreOptions {
  readonly job: string;
  readonly datacenter: string;
  readonly worker: string;
  readonly core: number;
  readonly index: number;
  readonly bundle: Uint8Array;
  readonly world: World;
  readonly truth: Truth;
  readonly committed: Committed;
  readonly random: Random;
  /** Interval of extra frames beside the one of every tick. */
  readonly frameEveryMs: () => number;
  /** The process stands still until then. */
  readonly frozenUntil: () => number;
  readonly send: (event: CoreEvent) => void;
}

interface Load {
  readonly prepare: Prepare;
  readonly manifest: WorkflowManifest;
  readonly behaviour: Behaviour;
  readonly recorder: StatsRecorder;
  readonly iterations: IndexLease | null;
  readonly rows: IndexLease | null;
  started: boolean;
  finished: boolean;
  paused: boolean;
  scale: number;
  /** Duration of the plan, excluding pauses. */
  planMs: number;
  /** When measured time was zero; pauses move it. */
  startedAt: number;
  tickedAt: number;
  arrived: number;
  /** Iterations left for each user. */
  left: number[];
  stopAt: number;
  /** Assigned and not used yet. */
  row: number | null;
  /** One user waits for a requested number. */
  asking: boolean;
}

export class SimCore {
  readonly #options: CoreOptions;
  readonly #truth: CoreTruth;
  readonly #repeats = new Repeats();
  readonly #loads = new Map<number, Load>();
  /** By request number. */
  readonly #asked = new Map<number, Load>();
  /** Null: the received bytes are not a bundle. */
  readonly #bundle: Bundle | null;
  /** Key of its submission. */
  readonly #key: string;
  #execution = -1;
  #asks = 0;
  #setUp: { readonly execution: number; stopped: boolean } | null = null;
  readonly #freezer: Freezer;

  readonly #requests = new OpenRequests((event) => this.#send(event));

  constructor(options: CoreOptions) {
    this.#options = options;
    this.#freezer = new Freezer(options);
    const { core, datacenter, job, random, truth, worker } = options;
    this.#bundle = bundleOf(options.bundle);
    this.#key = this.#bundle?.key ?? job;
    this.#truth = truth.opened(this.#key, { datacenter, job, worker, core });
    this.#after(random.float() * LOAD_MS_MAX, () => this.#load());
  }

  get isLoading(): boolean {
    return (
      !this.#freezer.isOver && [...this.#loads.values()].some((one) => one.started && !one.finished)
    );
  }

  get job(): string {
    return this.#options.job;
  }

  /** Number of the core in its job. */
  get core(): number {
    return this.#options.core;
  }

  /** Key of its submission. */
  get key(): string {
    return this.#key;
  }

  die(): void {
    this.#freezer.isOver = true;
  }

  #after(delayMs: number, run: () => void): void {
    this.#freezer.after(delayMs, run);
  }

  #send(event: CoreEvent): void {
    this.#repeats.onEvent(event);
    this.#options.send(event);
  }

  #load(): void {
    if (this.#bundle !== null) this.#send({ kind: "loaded", manifests: this.#bundle.manifests });
    else {
      const problem = { message: "the bundle cannot be read", location: null, mistake: true };
      this.#send({ kind: "loadFailed", problem });
    }
  }

  handle(command: CoreCommand): void {
    this.#freezer.told(() => this.#handle(command));
  }

  #handle(command: CoreCommand): void {
    const again = this.#repeats.again(command);
    if (again === null) this.#carryOut(command);
    else for (const event of again) this.#send(event);
  }

  #carryOut(command: CoreCommand): void {
    const load = this.#loads.get(this.#execution);
    const isCurrent = "execution" in command && command.execution === this.#execution;
    switch (command.kind) {
      case "prepare":
        this.#prepare(command);
        return;
      case "shared":
        this.#onShared(command);
        return;
      case "setup":
        if (isCurrent) this.#setup(command.execution);
        return;
      case "teardown":
        if (isCurrent) this.#tearDown(command.execution);
        return;
      case "load":
      case "sampleCalls":
      case "trace":
      case "exit":
        return;
      default:
        if (isCurrent && load !== undefined) this.#steer(load, command);
    }
  }

  #steer(
    load: Load,
    command: Exclude<
      CoreCommand,
      {
        kind:
          | "prepare"
          | "shared"
          | "setup"
          | "teardown"
          | "load"
          | "sampleCalls"
          | "trace"
          | "exit";
      }
    >,
  ): void {
    switch (command.kind) {
      case "start":
        this.#start(load, command.planMs);
        return;
      case "acknowledge":
        load.recorder.acknowledged(command.frame);
        return;
      case "pause":
      case "resume":
        load.paused = command.kind === "pause";
        return;
      case "scale":
        load.scale = command.factor;
        return;
      case "level":
        return;
      case "stop":
        this.#stop(load);
        return;
      case "lease": {
        const { from, last, name, to } = command;
        const lease = name.startsWith("feed:") ? load.rows : load.iterations;
        if (this.#requests.onLease(command)) lease?.granted(from, to, last);
        return;
      }
      case "askAgain":
        this.#requests.again();
        return;
      default:
        assertNever(command);
    }
  }

  /** T1: an execution is newer than all earlier ones of the core, which are over. */
  #prepare(prepare: Prepare): void {
    const { core, job, random, truth, worker } = this.#options;
    const { execution, workflow } = prepare;
    const where = `core ${core} of ${job} at ${worker}`;
    if (execution <= this.#execution)
      truth.violated("T1", `${where} gets ${execution} after ${this.#execution}`);
    if (this.isLoading) truth.violated("T1", `${where} gets ${execution} while it makes load`);
    this.#execution = execution;
    this.#requests.prepare();
    const whole = this.#bundle?.manifests.find(({ name }) => name === workflow);
    const part = prepare.share.part;
    const manifest =
      whole === undefined || part === undefined ? whole : { ...whole, load: part.load };
    const behaviour = this.#bundle?.behaviours[workflow];
    if (manifest === undefined || behaviour === undefined) {
      const problem = { message: `no ${workflow} is loaded`, location: null, mistake: true };
      this.#send({ kind: "failed", execution, problem });
      return;
    }
    this.#checkContext(prepare, manifest);
    this.#loads.set(execution, this.#newLoad(prepare, manifest, behaviour));
    this.#after(random.float() * PREPARE_MS_MAX, () => this.#send({ kind: "prepared", execution }));
  }

  /** T7: the values used by a workflow are committed and present when it begins. */
  #checkContext({ context, workflow }: Prepare, { uses }: WorkflowManifest): void {
    const { committed, job, truth } = this.#options;
    for (const { from, keys } of uses) {
      committed.onUsed(job, workflow, from);
      for (const key of keys)
        if (from.every((name) => context[name]?.[key] === undefined))
          truth.violated("T7", `${workflow} of ${job} begins without "${key}"`);
    }
  }

  #newLoad(prepare: Prepare, manifest: WorkflowManifest, behaviour: Behaviour): Load {
    const { execution, share } = prepare;
    const { corrected, load } = manifest;
    const requester: LeaseRequester = {
      request: (name, size) => this.#requests.lease(execution, name, size),
    };
    const iterations =
      load.kind === "shared" ? ticketLease(load.iterations, share.count, requester) : null;
    const rowsName = `${feedLease("rows")}:${behaviour.rows}`;
    const rows = behaviour.rows > 0 ? new IndexLease(rowsName, ROW_BLOCKS, requester) : null;
    const users = share.users[share.index] ?? 0;
    const each = load.kind === "perUser" ? load.iterations : Number.POSITIVE_INFINITY;
    return {
      ...{ prepare, manifest, behaviour, iterations, rows },
      recorder: new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected }),
      ...{ started: false, finished: false, paused: false, asking: false, scale: 1, row: null },
      ...{ planMs: 0, startedAt: 0, tickedAt: 0, arrived: 0, left: Array(users).fill(each) },
      stopAt: Number.POSITIVE_INFINITY,
    };
  }

  #setup(execution: number): void {
    const { truth } = this.#options;
    const load = this.#loads.get(execution);
    if (load === undefined) return;
    truth.aside(this.#key, "setups", load.manifest.name);
    const setUp = { execution, stopped: false };
    this.#setUp = setUp;
    this.#after(load.behaviour.setupMs, () => {
      this.#setUp = null;
      if (!setUp.stopped) this.#send({ kind: "setupDone", execution, value: { token: execution } });
    });
  }

  #tearDown(execution: number): void {
    const { random, truth } = this.#options;
    const load = this.#loads.get(execution);
    if (load === undefined) return;
    truth.aside(this.#key, "teardowns", load.manifest.name);
    this.#after(random.float() * 100, () => {
      this.#send({ kind: "tornDown", execution, faults: [] });
    });
  }

  #start(load: Load, planMs: number): void {
    const { count, index } = load.prepare.share;
    load.started = true;
    load.tickedAt = this.#options.world.now;
    load.startedAt = load.tickedAt - planMs;
    load.planMs = planMs;
    if (load.manifest.load.kind === "rate")
      load.arrived = arrivedBy(plannedArrivals(load.manifest.load, planMs), index, count);
    load.recorder.begin(Math.floor(planMs / WINDOW_MS));
    load.iterations?.prefetch();
    load.rows?.prefetch();
    this.#after(TICK_MS, () => this.#tick(load));
  }

  #stop(load: Load): void {
    const { execution } = load.prepare;
    if (this.#setUp?.execution === execution && !this.#setUp.stopped) {
      this.#setUp.stopped = true;
      const problem = { message: "the run was stopped", location: null, mistake: false };
      this.#send({ kind: "failed", execution, problem });
      return;
    }
    if (load.behaviour.isStubborn) return;
    const { random, world } = this.#options;
    const graceMs = random.float() * load.manifest.gracefulStopMs;
    load.stopAt = Math.min(load.stopAt, world.now + graceMs);
  }

  #tick(load: Load): void {
    if (load.finished) return;
    const { now } = this.#options.world;
    if (load.paused) load.startedAt += now - load.tickedAt;
    else {
      load.planMs += TICK_MS;
      this.#work(load);
      if (load.behaviour.numbers && !load.asking && load.planMs % ASK_EVERY_MS === 0)
        this.#ask(load);
    }
    load.tickedAt = now;
    const windows = Math.floor((now - load.startedAt) / WINDOW_MS);
    load.recorder.seal(windows, { users: 1, target: 1, cpuMs: 1, lagMsMax: 0 });
    if (now >= load.stopAt || isDone(load) || isTimeUp(load)) {
      this.#finish(load, windows);
      return;
    }
    this.#frame(load, windows, false);
    this.#flood(load, windows);
    this.#after(TICK_MS, () => this.#tick(load));
  }

  /** Sends more frames than there is news for. */
  #flood(load: Load, windows: number): void {
    const everyMs = this.#options.frameEveryMs();
    for (let at = everyMs; at < TICK_MS; at += everyMs)
      this.#after(at, () => {
        if (!load.finished) this.#frame(load, windows, false);
      });
  }

  /** Runs one tick of all users. */
  #work(load: Load): void {
    const { arrived, left, manifest, planMs, prepare, scale } = load;
    if (manifest.load.kind === "rate") {
      const { count, index } = prepare.share;
      const until = plannedArrivals(manifest.load, planMs);
      load.arrived = arrivedBy(until, index, count);
      const due = Math.round((load.arrived - arrived) * scale);
      for (let at = 0; at < due; at++) this.#call(load);
      return;
    }
    const loops = manifest.load.kind === "vus" ? Math.round(scale) || 1 : 1;
    for (const [user, each] of left.entries()) {
      // User code awaits the number that it requested.
      if (each <= 0 || (user === 0 && load.asking && manifest.load.kind !== "vus")) continue;
      for (let at = 0; at < loops; at++) this.#iterate(load, user);
    }
  }

  #iterate(load: Load, user: number): void {
    const { iterations, left } = load;
    if (!this.#hasRow(load)) return;
    const taken = iterations?.take() ?? 0;
    if (taken === "wait") return;
    if (taken === "exhausted") {
      left[user] = 0;
      return;
    }
    if (iterations !== null) this.#took(load, "iterations", taken);
    this.#call(load);
    left[user] = (left[user] ?? 0) - 1;
  }

  /** Does not wait: without a row the user tries again at the next tick. */
  #hasRow(load: Load): boolean {
    const { rows } = load;
    if (rows === null) return true;
    const row = load.row ?? rows.take();
    load.row = typeof row === "number" ? row : null;
    return load.row !== null;
  }

  #call(load: Load): void {
    if (!this.#hasRow(load)) return;
    if (load.row !== null) this.#took(load, "rows", load.row);
    load.row = null;
    const { manifest, recorder } = load;
    const { truth } = this.#options;
    truth.called(this.#key, this.#truth, manifest.name, 1);
    const step = recorder.stepNumber("call", "http");
    recorder.step(step).record(-1, 200, 1_000, 1_000, -1, -1, -1, 3, 4);
    recorder.counts.completed++;
  }

  /** Each datacenter counts its part from zero; without parts each has the whole. */
  #took({ behaviour, manifest, prepare }: Load, lease: string, index: number): void {
    const { datacenter, truth } = this.#options;
    const { part } = prepare.share;
    const first = part === undefined ? 0 : firstOf(lease, behaviour.rows, part);
    const place = part === undefined ? datacenter : "";
    truth.took(this.#key, `${manifest.name} ${place}`, lease, first + index);
  }

  #ask(load: Load): void {
    load.asking = true;
    const id = this.#asks++;
    this.#asked.set(id, load);
    const request = { kind: "numbers", name: "orders", count: NUMBERS_PER_BLOCK } as const;
    this.#send({ kind: "shared", id, request });
  }

  #onShared({ answer, id }: Extract<CoreCommand, { kind: "shared" }>): void {
    const load = this.#asked.get(id);
    if (load === undefined || answer.kind !== "numbers") return;
    this.#asked.delete(id);
    load.asking = false;
    const { datacenter, truth } = this.#options;
    truth.numbered(this.#key, `orders of ${datacenter}`, answer.from, answer.to);
  }

  #finish(load: Load, windows: number): void {
    load.finished = true;
    this.#frame(load, windows, true);
    const { execution } = load.prepare;
    const { core } = this.#options;
    const made = load.manifest.provides.length > 0 ? { made: core } : {};
    const fault = isTimeUp(load) && !isDone(load) ? timeIsUpFault(load.manifest.load) : null;
    const faults = fault === null ? [] : [{ part: null, ...fault }];
    const end = { notes: [], counts: [], faults };
    this.#send({ kind: "finished", execution, provided: made, ...end });
  }

  /** The last frame is complete, since no process may be left to repeat it. */
  #frame({ prepare, recorder }: Load, windows: number, full: boolean): void {
    const measuredMs = windows * WINDOW_MS;
    const moment = { measuredMs, warmingUp: false, target: 1, arrivalsWaiting: 0 };
    const bytes = recorder.frame(moment, full);
    const { execution } = prepare;
    this.#send({ kind: "frame", execution, part: null, bytes, health: VITALS });
  }
}

function isDone({ left, manifest }: Load): boolean {
  const { kind } = manifest.load;
  return (kind === "shared" || kind === "perUser") && left.every((one) => one <= 0);
}

function isTimeUp({ manifest, planMs }: Load): boolean {
  const { load } = manifest;
  return planMs >= ("durationMsMax" in load ? load.durationMsMax : (planDurationMs(load) ?? 0));
}

function firstOf(lease: string, rows: number, part: PlanPart): number {
  return lease === "rows" ? rowsOf(rows, part).from : part.firstIteration;
}

/** Arrivals of one share, out of `all` so far. */
function arrivedBy(all: number, index: number, count: number): number {
  return Math.max(0, Math.ceil((Math.floor(all) - index) / count));
}
