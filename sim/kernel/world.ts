/**
 * One seeded world: a clock, a heap of events, and labelled forks of one random source. Everything
 * that happens is an event with a time; ties are broken by order of scheduling. The loop sets the
 * time and calls. The same seed gives the same trace hash, always.
 */

import { assert } from "../../src/core/base/assert.ts";
import { Random } from "../../src/core/base/random.ts";

/** What an event is, for the trace. */
export type EventName =
  | "tick"
  | "datagram"
  | "streamRequest"
  | "streamReply"
  | "streamFailed"
  | "synced"
  | "fault"
  | "check"
  | "start"
  | "step";

export interface SimEvent {
  readonly name: EventName;
  readonly node: number;
  readonly run: () => void;
}

export interface TraceLine {
  readonly at: number;
  readonly text: string;
}

const TRACE_LINES_KEPT = 2_000;

export class World {
  readonly seed: number;
  readonly random: Random;
  now = 0;
  eventCount = 0;
  #hashA = 0x811c9dc5;
  #hashB = 0x9e3779b9;
  readonly #trace: TraceLine[] = [];
  #traceAt = 0;
  readonly #heap = new EventHeap();

  constructor(seed: number) {
    this.seed = seed;
    this.random = new Random(`world/${seed}`);
  }

  schedule(at: number, name: EventName, node: number, run: () => void): void {
    assert(at >= this.now - 1e-6, "events lie in the future");
    this.#heap.push(Math.max(at, this.now), { name, node, run });
  }

  /** Runs until the time given, or until `stop` says so after an event. */
  runUntil(untilMs: number, stop: () => boolean = () => false): void {
    for (;;) {
      const at = this.#heap.peekAt();
      if (at > untilMs) break;
      const event = this.#heap.pop();
      this.now = at;
      this.eventCount++;
      this.mix(event.node * 16 + event.name.length);
      this.mix(at * 1_000);
      event.run();
      if (stop()) return;
    }
    this.now = Math.max(this.now, untilMs);
  }

  /** Adds a fact to the trace hash. */
  mix(value: number): void {
    this.#hashA = Math.imul(this.#hashA ^ value, 0x01000193);
    this.#hashB = Math.imul((this.#hashB ^ value) + 0x7f4a7c15, 0x85ebca6b);
    this.#hashB ^= this.#hashB >>> 15;
  }

  /** A line for people: the last of them are printed with a failure. */
  note(text: string): void {
    this.#trace[this.#traceAt] = { at: this.now, text };
    this.#traceAt = (this.#traceAt + 1) % TRACE_LINES_KEPT;
    for (let i = 0; i < text.length; i++) this.mix(text.charCodeAt(i));
  }

  /** Oldest first. */
  lastNotes(count: number): TraceLine[] {
    const ordered = [...this.#trace.slice(this.#traceAt), ...this.#trace.slice(0, this.#traceAt)];
    return ordered.slice(-count);
  }

  traceHash(): string {
    const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
    return hex(this.#hashA) + hex(this.#hashB);
  }
}

const NO_EVENT: SimEvent = { name: "check", node: 0, run: () => undefined };

/** Binary heap over parallel arrays: no allocation per event but the event itself. */
class EventHeap {
  #ats = new Float64Array(1_024);
  #orders = new Float64Array(1_024);
  #events: SimEvent[] = [];
  #size = 0;
  #order = 0;

  peekAt(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#ats[0] as number);
  }

  push(at: number, event: SimEvent): void {
    if (this.#size === this.#ats.length) this.#grow();
    const order = this.#order++;
    let hole = this.#size++;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (!this.#before(at, order, parent)) break;
      this.#move(parent, hole);
      hole = parent;
    }
    this.#place(hole, at, order, event);
  }

  pop(): SimEvent {
    assert(this.#size > 0, "there is an event to take");
    const top = this.#events[0] as SimEvent;
    const last = --this.#size;
    const at = this.#ats[last] as number;
    const order = this.#orders[last] as number;
    const event = this.#events[last] as SimEvent;
    // Shortening an array costs more than the rest of this; an empty place costs nothing.
    this.#events[last] = NO_EVENT;
    if (last === 0) return top;
    let hole = 0;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#childBefore(child + 1, child)) child++;
      if (this.#before(at, order, child)) break;
      this.#move(child, hole);
      hole = child;
    }
    this.#place(hole, at, order, event);
    return top;
  }

  #before(at: number, order: number, index: number): boolean {
    const other = this.#ats[index] as number;
    return at < other || (at === other && order < (this.#orders[index] as number));
  }

  #childBefore(a: number, b: number): boolean {
    return this.#before(this.#ats[a] as number, this.#orders[a] as number, b);
  }

  #move(from: number, to: number): void {
    this.#ats[to] = this.#ats[from] as number;
    this.#orders[to] = this.#orders[from] as number;
    this.#events[to] = this.#events[from] as SimEvent;
  }

  #place(index: number, at: number, order: number, event: SimEvent): void {
    this.#ats[index] = at;
    this.#orders[index] = order;
    this.#events[index] = event;
  }

  #grow(): void {
    const ats = new Float64Array(this.#ats.length * 2);
    const orders = new Float64Array(ats.length);
    ats.set(this.#ats);
    orders.set(this.#orders);
    this.#ats = ats;
    this.#orders = orders;
  }
}
