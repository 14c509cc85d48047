/** Fake executor core: answers commands, and its load is one call per window. */

import { OpenRequests } from "../../../../engine/open-requests.ts";
import { Repeats } from "../../../../engine/repeats.ts";
import type { CoreCommand, CoreEvent } from "../../../load/job/core-messages.ts";
import { StatsRecorder } from "../../../load/stats/stats-recorder.ts";

export const ERROR_KINDS = ["timeout", "status"] as const;
const WINDOW_MS = 100;
/** Iterations requested by a core of a workflow named "leasing". */
export const BLOCK = 5;
const VITALS = { cpu: 0.1, residentBytes: 1, activeUsers: 1 };

type Prepare = Extract<CoreCommand, { kind: "prepare" }>;

interface Load {
  readonly execution: number;
  readonly recorder: StatsRecorder;
  readonly startedAt: number;
  readonly endsAt: number;
  windows: number;
  stopped: boolean;
  paused: boolean;
}

export class FakeCore {
  readonly #events: CoreEvent[] = [{ kind: "loaded", manifests: [] }];
  readonly #repeats = new Repeats();
  readonly commands: string[] = [];
  /** Blocks that it was assigned and received. */
  readonly blocks: (readonly [number, number])[] = [];
  readonly #requests = new OpenRequests((event) => this.#say(event));
  /** Calls actually made. */
  calls = 0;
  /** The core answers, but its load does not advance. */
  isStuck = false;
  /** The process is stopped. */
  isSilent = false;
  #spokeAt = 0;
  readonly #loadMs: number;
  /** When the process is up; earlier commands are lost. */
  readonly #thereAt: number;
  #prepared: Prepare | null = null;
  #load: Load | null = null;

  constructor(loadMs: number, thereAt: number) {
    this.#loadMs = loadMs;
    this.#thereAt = thereAt;
  }

  get isLoading(): boolean {
    return this.#load !== null;
  }

  get context(): Prepare["context"] {
    return this.#prepared?.context ?? {};
  }

  takeEvents(now: number): readonly CoreEvent[] {
    return now < this.#thereAt ? [] : this.#events.splice(0);
  }

  #say(event: CoreEvent): void {
    this.#repeats.onEvent(event);
    this.#events.push(event);
  }

  handle(command: CoreCommand, now: number): void {
    if (now < this.#thereAt) return;
    const again = this.#repeats.again(command);
    if (again === null) this.#carryOut(command, now);
    else this.#events.push(...again);
  }

  #carryOut(command: CoreCommand, now: number): void {
    if (command.kind !== "acknowledge" && command.kind !== "askAgain")
      this.commands.push(command.kind);
    switch (command.kind) {
      case "prepare":
        this.#prepared = command;
        this.#say({ kind: "prepared", execution: command.execution });
        return;
      case "setup":
        this.#say({ kind: "setupDone", execution: command.execution, value: { token: 7 } });
        return;
      case "start":
        this.#load ??= this.#newLoad(command.execution, now - command.planMs, now);
        if (this.#prepared?.workflow === "leasing")
          this.#requests.lease(command.execution, "iterations", BLOCK);
        return;
      case "lease":
        if (this.#requests.onLease(command)) this.blocks.push([command.from, command.to]);
        return;
      case "askAgain":
        this.#requests.again();
        return;
      case "stop":
        if (this.#load !== null) this.#load.stopped = true;
        return;
      case "pause":
      case "resume":
        if (this.#load !== null) this.#load.paused = command.kind === "pause";
        return;
      case "acknowledge":
        this.#load?.recorder.acknowledged(command.frame);
        return;
      case "teardown":
        this.#say({ kind: "tornDown", execution: command.execution, faults: [] });
        return;
      default:
    }
  }

  #newLoad(execution: number, startedAt: number, now: number): Load {
    const recorder = new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected: false });
    const windows = Math.floor((now - startedAt) / WINDOW_MS);
    recorder.begin(windows);
    return {
      execution,
      recorder,
      startedAt,
      endsAt: startedAt + this.#loadMs,
      windows,
      stopped: false,
      paused: false,
    };
  }

  tick(now: number): void {
    const load = this.#load;
    if (load === null || this.isSilent) return;
    if (this.isStuck && !load.stopped) {
      if (now - this.#spokeAt < WINDOW_MS) return;
      this.#spokeAt = now;
      this.#frame(load, false);
      return;
    }
    while ((load.windows + 1) * WINDOW_MS <= now - load.startedAt) this.#window(load);
    if (now < load.endsAt && !load.stopped) return;
    this.#load = null;
    this.#frame(load, true);
    this.#say({
      kind: "finished",
      execution: load.execution,
      provided: { made: load.windows },
      notes: [],
      counts: [],
      faults: [],
    });
  }

  #window(load: Load): void {
    const { recorder } = load;
    if (!load.paused) {
      this.calls++;
      const number = recorder.stepNumber("home", "http");
      recorder.step(number).record(-1, 200, 1_000, 1_000, -1, -1, -1, 3, 4);
      recorder.counts.completed++;
    }
    load.windows++;
    recorder.seal(load.windows, { users: 1, target: 1, cpuMs: 1, lagMsMax: 0 });
    this.#frame(load, false);
  }

  /** The last frame is complete, since no process may be left to repeat it. */
  #frame({ execution, recorder, windows }: Load, full: boolean): void {
    const measuredMs = windows * WINDOW_MS;
    const moment = { measuredMs, warmingUp: false, target: 1, arrivalsWaiting: 0 };
    const bytes = recorder.frame(moment, full);
    this.#say({ kind: "frame", execution, part: null, bytes, health: VITALS });
  }
}
