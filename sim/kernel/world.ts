/**
 * One seeded world: a clock, a heap of events, and labelled forks of one random source. Everything that happens is an
 * event with a time; ties are broken by order of scheduling. The loop sets the time and calls. The same seed always
 * gives the same trace hash.
 */

import { assert } from "../../src/core/base/assert.ts";
import { Heap, type HeapItem } from "../../src/core/base/heap.ts";
import { Random } from "../../src/core/base/random.ts";

/** Kind of an event, for the trace. */
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

interface SimEvent extends HeapItem {
  readonly at: number;
  readonly order: number;
  readonly name: EventName;
  readonly node: number;
  readonly run: () => void;
}

export interface TraceLine {
  readonly at: number;
  readonly text: string;
}

const TRACE_LINES_KEPT = 2_000;
/** Maximum timers of one node in one instant: beyond this it would be woken for ever. */
const TICKS_AT_ONCE_MAX = 1_000;

export class World {
  readonly seed: number;
  readonly random: Random;
  now = 0;
  eventCount = 0;
  /** Runs an event of a node; measurements replace it. */
  perform: (node: number, run: () => void) => void = (_node, run) => run();
  #hashA = 0x811c9dc5;
  #hashB = 0x9e3779b9;
  readonly #trace: TraceLine[] = [];
  #traceAt = 0;
  readonly #events = new Heap<SimEvent>(before);
  #scheduled = 0;
  #ticksAtOnce = { at: -1, node: -1, count: 0 };

  constructor(seed: number) {
    this.seed = seed;
    this.random = new Random(`world/${seed}`);
  }

  schedule(at: number, name: EventName, node: number, run: () => void): void {
    assert(at >= this.now - 1e-6, "events lie in the future");
    const order = this.#scheduled++;
    this.#events.push({ at: Math.max(at, this.now), order, name, node, run, place: -1 });
  }

  /** Runs until the time given, or until `stop` says so after an event. */
  runUntil(untilMs: number, stop: () => boolean = () => false): void {
    for (;;) {
      const event = this.#events.peek();
      if (event === undefined || event.at > untilMs) break;
      this.#events.remove(event);
      const { at } = event;
      this.now = at;
      this.eventCount++;
      this.mix(event.node * 16 + event.name.length);
      this.mix(at * 1_000);
      if (event.name === "tick") this.#countTick(event);
      this.perform(event.node, event.run);
      if (stop()) return;
    }
    this.now = Math.max(this.now, untilMs);
  }

  /** A process whose next deadline has always passed would spin, and the world would stand still. */
  #countTick({ at, node }: SimEvent): void {
    const known = this.#ticksAtOnce;
    const isSame = known.at === at && known.node === node;
    this.#ticksAtOnce = { at, node, count: isSame ? known.count + 1 : 1 };
    const { count } = this.#ticksAtOnce;
    assert(count <= TICKS_AT_ONCE_MAX, `node ${node} sleeps: its next deadline is never ahead`);
  }

  /** Adds a fact to the trace hash. */
  mix(value: number): void {
    this.#hashA = Math.imul(this.#hashA ^ value, 0x01000193);
    this.#hashB = Math.imul((this.#hashB ^ value) + 0x7f4a7c15, 0x85ebca6b);
    this.#hashB ^= this.#hashB >>> 15;
  }

  /** Adds a line for people: the last ones are printed with a failure. */
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

function before(a: SimEvent, b: SimEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
