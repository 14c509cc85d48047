/**
 * Stream of events of one job to its leader: numbered from zero in each view, sent one message at a time, repeated from
 * the first unacknowledged event. A queued frame is replaced by the next one of the same core, execution and part, or
 * by the next merged one, because each is a delta to the last acknowledged one.
 */

import type { WorkerEvent } from "../messages.ts";
import { WORKER_RULES, type WorkerRules } from "./rules.ts";

/** Size limit of one message; a single larger event is sent alone. */
const MESSAGE_BYTES_MAX = 1_048_576;
const MESSAGE_EVENTS_MAX = 256;
/** Maximum number of queued lines of user code; further lines are counted and dropped. */
const LINES_MAX = 2_000;
/** Approximate overhead of an event. */
const EVENT_BYTES = 256;

interface Row {
  readonly first: number;
  readonly events: readonly WorkerEvent[];
}

export class EventRow {
  readonly #rules: WorkerRules;
  #events: WorkerEvent[] = [];
  /** Number of the first queued event. */
  #first = 0;
  /** A message is sent but not answered yet. */
  #isUnderWay = false;
  /** Number of queued events already sent in this view. The leader may have them, so they must not change. */
  #sent = 0;
  #lines = 0;
  #droppedLines = 0;

  constructor(rules: WorkerRules = WORKER_RULES) {
    this.#rules = rules;
  }

  get waiting(): number {
    return this.#events.length;
  }

  /** Queued events that are not replaced by later ones. */
  get lasting(): number {
    return this.#events.filter((event) => !isLine(event) && frameKey(event) === null).length;
  }

  /** Only metrics and lines are queued; these can wait for the next message. (AD-37.8) */
  get isPatient(): boolean {
    return this.#events.every((event) => isLine(event) || frameKey(event) !== null);
  }

  /** Number of the next event to be pushed. */
  get next(): number {
    return this.#first + this.#events.length;
  }

  push(event: WorkerEvent): void {
    if (isLine(event)) {
      if (this.#lines >= LINES_MAX) {
        this.#droppedLines++;
        return;
      }
      this.#lines++;
    }
    const index = this.#replaceableIndex(event);
    if (index < 0) this.#events.push(event);
    else this.#events[index] = event;
  }

  /** Returns the next message; null if one is in flight, or if nothing is queued and `mayBeEmpty` is false. */
  take(mayBeEmpty: boolean): Row | null {
    if (this.#isUnderWay) return null;
    this.#reportDropped();
    if (this.#events.length === 0 && !mayBeEmpty) return null;
    let bytes = 0;
    let count = 0;
    for (const event of this.#events) {
      bytes += bytesOf(event);
      if (count > 0 && (bytes > MESSAGE_BYTES_MAX || count === MESSAGE_EVENTS_MAX)) break;
      count++;
    }
    this.#isUnderWay = true;
    this.#sent = Math.max(this.#sent, count);
    return { first: this.#first, events: this.#events.slice(0, count) };
  }

  /** The leader has everything before `next`. Returns false if nothing new was acknowledged. */
  taken(next: number): boolean {
    this.#isUnderWay = false;
    // The leader counts from before the acknowledged events: the queue continues from there.
    if (next < this.#first) this.#first = next;
    const count = Math.min(this.#events.length, next - this.#first);
    for (const event of this.#events.splice(0, count)) if (isLine(event)) this.#lines--;
    this.#first += count;
    this.#sent = Math.max(0, this.#sent - count);
    return count > 0;
  }

  /** No answer will come: the next message repeats the events. */
  lost(): void {
    if (this.#rules.eventsRepeated) this.#isUnderWay = false;
  }

  /** Removes and returns all frames, merged or of one core. Only valid before `restart`, which renumbers events. */
  takeFrames(): readonly WorkerEvent[] {
    const frames = this.#events.filter((event) => frameKey(event) !== null);
    this.#events = this.#events.filter((event) => frameKey(event) === null);
    return frames;
  }

  /** Restarts at zero for a new leader: first the `kept` events, then the unacknowledged ones. */
  restart(kept: readonly WorkerEvent[]): void {
    this.#isUnderWay = false;
    this.#sent = 0;
    if (this.#rules.eventsRenumbered) this.#first = 0;
    const waiting = new Set(this.#events);
    this.#events.unshift(...kept.filter((event) => !waiting.has(event)));
  }

  /** Drops all events. */
  clear(): void {
    this.#events = [];
    this.#isUnderWay = false;
    this.#sent = 0;
    this.#lines = 0;
    this.#droppedLines = 0;
  }

  /** Index of an unsent frame with the same key; -1 if there is none. */
  #replaceableIndex(event: WorkerEvent): number {
    const key = frameKey(event);
    if (key === null) return -1;
    const sent = this.#rules.sentFramesStay ? this.#sent : 0;
    for (let at = this.#events.length - 1; at >= sent; at--) {
      const other = this.#events[at];
      if (other !== undefined && frameKey(other) === key) return at;
    }
    return -1;
  }

  #reportDropped(): void {
    if (this.#droppedLines === 0 || this.#lines >= LINES_MAX) return;
    const line = `${this.#droppedLines} lines were dropped: more than could be sent`;
    this.#droppedLines = 0;
    this.#lines++;
    this.#events.push({ kind: "core", core: 0, event: { kind: "log", line, isComplaint: false } });
  }
}

function isLine(event: WorkerEvent): boolean {
  return event.kind === "core" && event.event.kind === "log";
}

function frameKey(row: WorkerEvent): string | null {
  if (row.kind === "figures") return `merged ${row.execution} ${row.part ?? ""}`;
  if (row.kind !== "core" || row.event.kind !== "frame") return null;
  return `${row.core} ${row.event.execution} ${row.event.part ?? ""}`;
}

function bytesOf(row: WorkerEvent): number {
  if (row.kind === "figures")
    return row.cores.reduce((sum, { own }) => sum + EVENT_BYTES + own.length, row.bytes.length);
  if (row.kind !== "core") return EVENT_BYTES;
  const { event } = row;
  if (event.kind === "frame") return EVENT_BYTES + event.bytes.length;
  if (event.kind === "log") return EVENT_BYTES + event.line.length;
  return EVENT_BYTES;
}
