/** State of a job on a worker: its leader, its cores, and the events to report. */

import type { MergedFigures } from "../../load/job/core-messages.ts";
import type { RelayedCommand, RelayedEvent, RunningCore, WorkerEvent } from "../messages.ts";
import { bounded } from "./bounded-event.ts";
import { EventRow } from "./event-row.ts";
import { KeptFrames } from "./kept-frames.ts";
import { MergedFrames } from "./merged-frames.ts";
import type { WorkerRules } from "./rules.ts";

/** Leader of a job. `merges`: it accepts merged metrics of cores. */
export interface Leader {
  readonly name: string;
  readonly view: number;
  readonly merges: boolean;
}

/** One core of a job, in a process of its own. */
class HeldCore {
  readonly slot: number;
  /** Token of the last assigned attempt. */
  token: number | null = null;
  /** Reason why this worker stops the load early; null if it does not. */
  cutFor: string | null = null;
  /** Executions that were started and have not finished. */
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

  /** Returns the commands that stop everything running here. */
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
  /** Manager that leads the job. */
  #leader: Leader;
  /** The leader has not refused events of the job. */
  isHeard = true;
  /** When events may be sent again after the leader accepted none. */
  notBefore = 0;
  /** Metrics are delayed until then because managers are overloaded; 0 for no delay. */
  figuresAt = 0;
  /** When to ask a manager whether the job still exists, after a period of silence. */
  askAt = Number.POSITIVE_INFINITY;
  /** How often managers other than the leader were asked. */
  asked = 0;
  /** Nothing of the job runs here, and nothing is left to report. */
  isClosed = false;
  /** Number of the next order in this view. */
  nextOrder = 0;
  /** Longest graceful stop of the job's workflows. */
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

  /** Switches to a new leader. Orders and events restart at zero in each view. */
  follow(leader: Leader, now: number): void {
    this.isHeard = true;
    if (leader.view === this.#leader.view) return;
    this.notBefore = 0;
    this.figuresAt = 0;
    this.nextOrder = 0;
    this.#lead(leader, now);
  }

  /** The leader reconnected. If it changed its version, it has restarted and events start from zero. */
  onUp(merges: boolean, now: number): void {
    if (merges !== this.#leader.merges) this.#lead({ ...this.#leader, merges }, now);
  }

  /**
   * Prepares the event stream for a leader without any state: everything known here is sent. Queued frames were written
   * for the previous leader; they are merged now or sent as they are, depending on the new one.
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

  /** Returns the command to send to the core at once, or null. */
  onEvent(core: number, event: RelayedEvent, now: number): RelayedCommand | null {
    const held = this.cores.get(core);
    held?.onEvent(event);
    const isOver = event.kind === "finished" || event.kind === "failed";
    if (isOver) this.merged.ended(core, event.execution);
    // A share that was cut short has not finished, whatever its core reports.
    if (held?.cutFor != null && isOver) return null;
    const row = { kind: "core", core, event: bounded(event) } as const;
    this.#kept.onEvent(row);
    if (event.kind === "loaded") this.#onLoaded(event.manifests);
    if (event.kind === "frame" && this.#leader.merges) {
      const { execution, part } = event;
      const frame = this.merged.take(core, event, now);
      if (frame !== null) return { kind: "acknowledge", execution, part, frame };
    }
    if (isOver || event.kind === "tornDown") this.#pushUnreported(core, now);
    this.events.push(row);
    return null;
  }

  #onLoaded(manifests: Extract<RelayedEvent, { kind: "loaded" }>["manifests"]): void {
    this.merged.onLoaded(manifests);
    for (const { gracefulStopMs } of manifests)
      this.gracefulStopMs = Math.max(this.gracefulStopMs, gracefulStopMs);
  }

  /** Reports a lost core. `complete`: everything it measured was reported before. */
  lost(core: number, what: string, complete: boolean, now: number): void {
    this.#pushUnreported(core, now);
    this.merged.ended(core, null);
    this.events.push({ kind: "coreLost", core, what, complete });
  }

  /** Reports what a core has measured before the event of its end. */
  #pushUnreported(core: number, now: number): void {
    for (const figures of this.merged.news(core, now)) this.events.push(figuresEvent(figures));
  }

  /** Queues the metrics that are due. */
  gather(now: number): void {
    for (const figures of this.merged.due(now)) this.events.push(figuresEvent(figures));
  }

  /** Nothing of the job runs here any more, and nothing is left to report. */
  close(): void {
    this.isClosed = true;
    this.#kept.clear();
    this.merged.clear();
  }

  /** Something runs here or is left to report. */
  get isOpen(): boolean {
    return this.cores.size > 0 || this.events.waiting > 0;
  }

  /** When to send without any further input. */
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
