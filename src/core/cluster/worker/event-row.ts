/**
 * The events of one job on their way to its leader: numbered from zero in each view, sent one message at a
 * time, repeated from the first that was not confirmed. A frame that waits is replaced by the next one of the same
 * core, execution and part, or by the next merged one, since each is written against the last that was acknowledged.
 */

import type { WorkerEvent } from "../messages.ts";
import { WORKER_RULES, type WorkerRules } from "./rules.ts";

/** Of one message; a single larger event travels alone. */
const MESSAGE_BYTES_MAX = 1_048_576;
const MESSAGE_EVENTS_MAX = 256;
/** Lines of user code that wait for a leader; what comes on top is counted. */
const LINES_MAX = 2_000;
/** What an event takes beside its bytes, about. */
const EVENT_BYTES = 256;

interface Row {
  readonly first: number;
  readonly events: readonly WorkerEvent[];
}

export class EventRow {
  readonly #rules: WorkerRules;
  #events: WorkerEvent[] = [];
  /** Number of the first that waits. */
  #first = 0;
  /** A message is not answered yet. */
  #isUnderWay = false;
  /** How many of those that wait were sent in this view: the leader may have them, as they are. */
  #sent = 0;
  #lines = 0;
  #droppedLines = 0;

  constructor(rules: WorkerRules = WORKER_RULES) {
    this.#rules = rules;
  }

  get waiting(): number {
    return this.#events.length;
  }

  /** What waits and is not replaced by what comes later. */
  get lasting(): number {
    return this.#events.filter((event) => !isLine(event) && frameKey(event) === null).length;
  }

  /** Nothing waits but figures and lines, of which the next message tells as much. (AD-37.8) */
  get isPatient(): boolean {
    return this.#events.every((event) => isLine(event) || frameKey(event) !== null);
  }

  /** Number of the first that is still to come. */
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
    const place = this.#placeOf(event);
    if (place < 0) this.#events.push(event);
    else this.#events[place] = event;
  }

  /** The next message; null when one is under way, or when nothing waits and it may not be empty. */
  take(mayBeEmpty: boolean): Row | null {
    if (this.#isUnderWay) return null;
    this.#tellDropped();
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

  /** Everything before `next` is with the leader. False when that is nothing new. */
  taken(next: number): boolean {
    this.#isUnderWay = false;
    // It counts from before what was confirmed: what is left goes on from there.
    if (next < this.#first) this.#first = next;
    const count = Math.min(this.#events.length, next - this.#first);
    for (const event of this.#events.splice(0, count)) if (isLine(event)) this.#lines--;
    this.#first += count;
    this.#sent = Math.max(0, this.#sent - count);
    return count > 0;
  }

  /** No answer will come: the same is sent again. */
  lost(): void {
    if (this.#rules.eventsRepeated) this.#isUnderWay = false;
  }

  /** Takes out all frames, merged or of one core; only before `restart`, since it counts anew. */
  takeFrames(): readonly WorkerEvent[] {
    const frames = this.#events.filter((event) => frameKey(event) !== null);
    this.#events = this.#events.filter((event) => frameKey(event) === null);
    return frames;
  }

  /** Another leader counts from zero, with what it needs first and then with what nobody has confirmed. */
  restart(kept: readonly WorkerEvent[]): void {
    this.#isUnderWay = false;
    this.#sent = 0;
    if (this.#rules.eventsRenumbered) this.#first = 0;
    const waiting = new Set(this.#events);
    this.#events.unshift(...kept.filter((event) => !waiting.has(event)));
  }

  /** Nobody wants them. */
  clear(): void {
    this.#events = [];
    this.#isUnderWay = false;
    this.#sent = 0;
    this.#lines = 0;
    this.#droppedLines = 0;
  }

  /** A frame of the same kind that has not been sent; -1 where there is none. */
  #placeOf(event: WorkerEvent): number {
    const key = frameKey(event);
    if (key === null) return -1;
    const sent = this.#rules.sentFramesStay ? this.#sent : 0;
    for (let at = this.#events.length - 1; at >= sent; at--) {
      const other = this.#events[at];
      if (other !== undefined && frameKey(other) === key) return at;
    }
    return -1;
  }

  #tellDropped(): void {
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
