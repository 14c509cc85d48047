/** What a worker knows of a job that it has cores for: who leads it, what its cores do, what is to be told. */

import type { RelayedCommand, RelayedEvent, RunningCore } from "../messages.ts";
import { bounded } from "./bounded-event.ts";
import { EventRow } from "./event-row.ts";
import { KeptFrames } from "./kept-frames.ts";
import type { WorkerRules } from "./rules.ts";

/** One core of a job, in a process of its own. */
class HeldCore {
  readonly slot: number;
  /** Of the attempt that it was last given. */
  token: number | null = null;
  /** Why this worker ends its load before anybody asked for it; null: it does not. */
  cutFor: string | null = null;
  /** Executions that were begun and have not ended. */
  readonly #running = new Set<number>();

  constructor(slot: number) {
    this.slot = slot;
  }

  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  onCommand(command: RelayedCommand): void {
    if (command.kind === "prepare") this.#running.add(command.execution);
  }

  onEvent(event: RelayedEvent): void {
    if (event.kind === "finished" || event.kind === "failed") this.#running.delete(event.execution);
  }

  /** What asks everything that runs here to end. */
  cut(what: string): readonly RelayedCommand[] {
    this.cutFor = what;
    return [...this.#running].map((execution) => ({ kind: "stop", execution }));
  }
}

export class HeldJob {
  readonly name: string;
  readonly cores = new Map<number, HeldCore>();
  readonly events: EventRow;
  readonly #kept = new KeptFrames();
  readonly #rules: WorkerRules;
  /** The manager whose orders it takes, and its view. */
  #leader: string;
  #view: number;
  /** The leader has not refused to hear of it. */
  isHeard = true;
  /** When events may be sent again, after the leader has taken none of them. */
  notBefore = 0;
  /** Before then figures wait, since managers are hard-pressed; 0: they do not. */
  figuresAt = 0;
  /** When a manager is asked whether the job still is, having been silent for so long. */
  askAt = Number.POSITIVE_INFINITY;
  /** How often others than its leader were asked. */
  asked = 0;
  /** Nothing of it runs here, and nothing is to be told. */
  isClosed = false;
  /** Number of the order that comes next in this view. */
  nextOrder = 0;
  /** The longest that work in flight may take at its end. */
  gracefulStopMs = 0;

  constructor(name: string, leader: string, view: number, rules: WorkerRules) {
    this.name = name;
    this.events = new EventRow(rules);
    this.#rules = rules;
    this.#leader = leader;
    this.#view = view;
  }

  get leader(): string {
    return this.#leader;
  }

  get view(): number {
    return this.#view;
  }

  /** Orders and events are counted from zero in each view. */
  follow(leader: string, view: number): void {
    this.isHeard = true;
    if (view === this.#view) return;
    this.notBefore = 0;
    this.figuresAt = 0;
    this.#leader = leader;
    this.#view = view;
    this.nextOrder = 0;
    this.events.restart(this.#rules.figuresKept ? this.#kept.all : []);
  }

  open(core: number, slot: number): void {
    this.cores.set(core, new HeldCore(slot));
  }

  onEvent(core: number, event: RelayedEvent): void {
    const held = this.cores.get(core);
    held?.onEvent(event);
    // A share that was cut short has not finished, whatever its core says.
    if (held?.cutFor != null && (event.kind === "finished" || event.kind === "failed")) return;
    const row = { kind: "core", core, event: bounded(event) } as const;
    this.#kept.onEvent(row);
    this.events.push(row);
    if (event.kind !== "loaded") return;
    for (const { gracefulStopMs } of event.manifests) {
      this.gracefulStopMs = Math.max(this.gracefulStopMs, gracefulStopMs);
    }
  }

  /** Nothing of it runs here any more, and nobody is to be told anything. */
  close(): void {
    this.isClosed = true;
    this.#kept.clear();
  }

  /** Somebody has to hear of it, or to end it. */
  get isOpen(): boolean {
    return this.cores.size > 0 || this.events.waiting > 0;
  }

  /** When something of it has to be said without anything having happened. */
  sendAt(isLeaderLinked: boolean): number {
    const waitsFor = Math.max(this.notBefore, this.events.isPatient ? this.figuresAt : 0);
    const waits = this.isHeard && isLeaderLinked && waitsFor > 0;
    return waits ? Math.min(this.askAt, waitsFor) : this.askAt;
  }

  running(): readonly RunningCore[] {
    return [...this.cores].map(([core, { token }]) => ({ core, token }));
  }
}
