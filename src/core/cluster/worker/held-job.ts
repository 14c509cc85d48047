/** What a worker knows of a job that it has cores for: who leads it, what its cores do, what is to be told. */

import type { MergedFigures } from "../../load/job/core-messages.ts";
import type { RelayedCommand, RelayedEvent, RunningCore, WorkerEvent } from "../messages.ts";
import { bounded } from "./bounded-event.ts";
import { EventRow } from "./event-row.ts";
import { KeptFrames } from "./kept-frames.ts";
import { MergedFrames } from "./merged-frames.ts";
import type { WorkerRules } from "./rules.ts";

/** Who leads a job here; `merges`: it takes the figures of cores merged. */
export interface Leader {
  readonly name: string;
  readonly view: number;
  readonly merges: boolean;
}

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
  readonly merged: MergedFrames;
  readonly #kept = new KeptFrames();
  readonly #rules: WorkerRules;
  /** The manager whose orders it takes. */
  #leader: Leader;
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

  constructor(name: string, leader: Leader, errorKinds: number, rules: WorkerRules) {
    this.name = name;
    this.events = new EventRow(rules);
    this.merged = new MergedFrames(errorKinds);
    this.#rules = rules;
    this.#leader = leader;
  }

  get leader(): string {
    return this.#leader.name;
  }

  get view(): number {
    return this.#leader.view;
  }

  /** Orders and events are counted from zero in each view. */
  follow(leader: Leader, now: number): void {
    this.isHeard = true;
    if (leader.view === this.#leader.view) return;
    this.notBefore = 0;
    this.figuresAt = 0;
    this.nextOrder = 0;
    this.#lead(leader, now);
  }

  /** Its leader is connected again; one that has become another version since began anew, and counts from zero. */
  onUp(merges: boolean, now: number): void {
    if (merges !== this.#leader.merges) this.#lead({ ...this.#leader, merges }, now);
  }

  /**
   * The leader holds nothing: it is told all that is known here. What waited was written for another one; as it
   * merges, or does not, frames of cores are merged now or go up as they are.
   */
  #lead(leader: Leader, now: number): void {
    this.#leader = leader;
    const kept = this.#rules.figuresKept ? this.#kept.all : [];
    const waiting = this.events.takeFrames().filter(({ kind }) => kind === "core");
    if (!leader.merges) {
      this.merged.clear();
      this.events.restart([...kept, ...waiting.filter((one) => !kept.includes(one))]);
      return;
    }
    if (!this.#rules.figuresKept) this.merged.clear();
    this.merged.forgetUnmerged();
    const unmerged = new Set([...kept, ...waiting].filter((one) => !this.#isMerged(one, now)));
    this.events.restart([...this.merged.restart(now).map(figuresEvent), ...unmerged]);
  }

  #isMerged(row: WorkerEvent, now: number): boolean {
    if (row.kind !== "core" || row.event.kind !== "frame") return false;
    return this.merged.take(row.core, row.event, now) !== null;
  }

  open(core: number, slot: number): void {
    this.cores.set(core, new HeldCore(slot));
  }

  onCommand(core: number, command: RelayedCommand): void {
    this.cores.get(core)?.onCommand(command);
    this.merged.onCommand(core, command, this.#leader.merges);
  }

  /** What the core is to be told at once; null: nothing. */
  onEvent(core: number, event: RelayedEvent, now: number): RelayedCommand | null {
    const held = this.cores.get(core);
    held?.onEvent(event);
    const isOver = event.kind === "finished" || event.kind === "failed";
    if (isOver) this.merged.ended(core, event.execution);
    // A share that was cut short has not finished, whatever its core says.
    if (held?.cutFor != null && isOver) return null;
    const row = { kind: "core", core, event: bounded(event) } as const;
    this.#kept.onEvent(row);
    if (event.kind === "loaded") this.#onLoaded(event.manifests);
    if (event.kind === "frame" && this.#leader.merges) {
      const { execution, part } = event;
      const frame = this.merged.take(core, event, now);
      if (frame !== null) return { kind: "acknowledge", execution, part, frame };
    }
    if (isOver || event.kind === "tornDown") this.#tellNews(core, now);
    this.events.push(row);
    return null;
  }

  #onLoaded(manifests: Extract<RelayedEvent, { kind: "loaded" }>["manifests"]): void {
    this.merged.onLoaded(manifests);
    for (const { gracefulStopMs } of manifests)
      this.gracefulStopMs = Math.max(this.gracefulStopMs, gracefulStopMs);
  }

  /** It is gone; `complete`: all that it measured is told before. */
  lost(core: number, what: string, complete: boolean, now: number): void {
    this.#tellNews(core, now);
    this.merged.ended(core, null);
    this.events.push({ kind: "coreLost", core, what, complete });
  }

  /** What a core has measured stands before what is said of its end. */
  #tellNews(core: number, now: number): void {
    for (const figures of this.merged.news(core, now)) this.events.push(figuresEvent(figures));
  }

  /** Figures that are due join what waits. */
  gather(now: number): void {
    for (const figures of this.merged.due(now)) this.events.push(figuresEvent(figures));
  }

  /** Nothing of it runs here any more, and nobody is to be told anything. */
  close(): void {
    this.isClosed = true;
    this.#kept.clear();
    this.merged.clear();
  }

  /** Somebody has to hear of it, or to end it. */
  get isOpen(): boolean {
    return this.cores.size > 0 || this.events.waiting > 0;
  }

  /** When something of it has to be said without anything having happened. */
  sendAt(isLeaderLinked: boolean): number {
    const waitsFor = Math.max(this.notBefore, this.events.isPatient ? this.figuresAt : 0);
    const waits = this.isHeard && isLeaderLinked && waitsFor > 0;
    const at = Math.min(this.askAt, this.merged.dueAt);
    return waits ? Math.min(at, waitsFor) : at;
  }

  running(): readonly RunningCore[] {
    return [...this.cores].map(([core, { token }]) => ({ core, token }));
  }
}

function figuresEvent(figures: MergedFigures): WorkerEvent {
  return { kind: "figures", ...figures };
}
