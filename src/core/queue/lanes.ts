/**
 * The ready tasks, as the leader holds them in memory: one lane per executor and placement, each in
 * order (priority, then id), each a window on what the database holds.
 *
 *     lane "http"            [ 4 7 9 … ]  more in the database after the last
 *     lane "gpu {cap:…}"     [ 5 6 ]      all of it
 *
 * A node's claim merges the heads of the lanes it may run, so the order over lanes is the order of
 * submission, and a lane that no node can run never stands in the way of another. (TQ-22, TQ-36)
 *
 * The database stays the truth: every claim is checked there. A task is here at most once; one that
 * was handed out comes back only through `add`.
 */

import { assert } from "../base/assert.ts";
import { Heap, type HeapItem } from "../base/heap.ts";
import { QUEUE_LIMITS } from "./defaults.ts";
import { type NodeProfile, type Placement, refusal } from "./placement.ts";

export interface ReadyTask {
  readonly id: number;
  readonly executor: string;
  readonly priority: number;
  readonly attempt: number;
  readonly placement: Placement | null;
  /** JSON text; undefined when it is too large to keep and is fetched with the claim. */
  readonly input: string | undefined;
  /** When it became ready, on the leader's monotonic clock: what the queue delay is counted from. */
  readonly readyAt: number;
}

interface Lane {
  readonly name: string;
  readonly executor: string;
  readonly placement: Placement | null;
  /** In order; `head` is the index of the first still there. */
  tasks: ReadyTask[];
  head: number;
  /** The database may hold more tasks after the last one here. */
  more: boolean;
  /** Where the window ends while `more`: nothing after it may be added out of turn. */
  end: Position;
}

interface Position {
  readonly priority: number;
  readonly id: number;
}

export const LANE_START: Position = { priority: 2_147_483_647, id: 0 };

interface LanesOptions {
  readonly tasksMax: number;
  readonly refillBelow: number;
}

export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #options: LanesOptions;
  #size = 0;

  constructor(options: LanesOptions) {
    assert(options.refillBelow <= options.tasksMax, "a lane is refilled below its size");
    this.#options = options;
  }

  /** Ready tasks held in memory. */
  get size(): number {
    return this.#size;
  }

  has(name: string): boolean {
    return this.#lanes.has(name);
  }

  /** A task became ready. Behind a window that has more in the database it stays there. */
  add(name: string, task: ReadyTask): void {
    const lane = this.#open(name, task);
    if (lane.more && isAfter(task, lane.end)) return;
    if (lane.tasks.length - lane.head >= this.#options.tasksMax) {
      const last = lane.tasks.at(-1);
      assert(last !== undefined, "a full lane has a last task");
      if (!lane.more) lane.end = last;
      lane.more = true;
      if (isAfter(task, lane.end)) return;
    }
    if (insert(lane, task)) this.#size++;
  }

  /** What the database answered to a refill of this lane, in order. */
  refill(name: string, tasks: readonly ReadyTask[], more: boolean): void {
    const first = tasks[0];
    if (first !== undefined) {
      const lane = this.#open(name, first);
      for (const task of tasks) {
        if (insert(lane, task)) this.#size++;
      }
    }
    const lane = this.#lanes.get(name);
    if (lane === undefined) return;
    const last = tasks.at(-1);
    if (last !== undefined && isAfter(last, lane.end)) lane.end = last;
    lane.more = more;
    if (!more && lane.head === lane.tasks.length) this.#lanes.delete(name);
  }

  /** Says that the database may hold ready tasks of this lane that are not here; it is read again from the start. */
  reopen(name: string): void {
    const lane = this.#lanes.get(name);
    if (lane === undefined) {
      this.#lanes.set(name, emptyLane(name, "", null, true));
      return;
    }
    lane.more = true;
    lane.end = LANE_START;
  }

  /** Lanes that are running low while the database may hold more, with where to go on. */
  lowLanes(): readonly { readonly name: string; readonly after: Position }[] {
    const low: { name: string; after: Position }[] = [];
    for (const lane of this.#lanes.values()) {
      const count = lane.tasks.length - lane.head;
      if (lane.more && count < this.#options.refillBelow)
        low.push({ name: lane.name, after: lane.end });
    }
    return low;
  }

  /**
   * Takes up to `count` tasks that this node may run, highest priority and oldest first, and no more
   * than `bytesMax` of inputs beyond the first. `running` tells how many of a lane the node runs already.
   */
  take(
    node: NodeProfile,
    count: number,
    running: (lane: string) => number,
    bytesMax: number = Number.POSITIVE_INFINITY,
  ): { readonly lane: string; readonly task: ReadyTask }[] {
    const taken: { lane: string; task: ReadyTask }[] = [];
    const heads = this.#openHeads(node, running);
    let bytes = 0;
    while (taken.length < count) {
      const open = heads.pop();
      if (open === undefined) break;
      const { lane } = open;
      const task = headOf(open);
      bytes += task.input === undefined ? QUEUE_LIMITS.payloadBytesMax : task.input.length;
      if (taken.length > 0 && bytes > bytesMax) break;
      lane.head++;
      this.#size--;
      taken.push({ lane: lane.name, task });
      if (--open.room > 0 && lane.head < lane.tasks.length) heads.push(open);
      else this.#compact(lane);
    }
    for (const lane of this.#lanes.values()) this.#compact(lane);
    return taken;
  }

  /** The first ids a node could claim now, without taking them. */
  peek(node: NodeProfile, count: number): readonly ReadyTask[] {
    const tasks: ReadyTask[] = [];
    for (const lane of this.#lanes.values()) {
      if (refusal(lane.executor, lane.placement, node) !== undefined) continue;
      tasks.push(...lane.tasks.slice(lane.head, lane.head + count));
    }
    return tasks.sort(compare).slice(0, count);
  }

  /** Takes one named task out, if it is here and this node may run it. */
  takeById(
    id: number,
    mayRun: (task: ReadyTask) => boolean,
  ): { lane: string; task: ReadyTask } | undefined {
    for (const lane of this.#lanes.values()) {
      const at = lane.tasks.findIndex((task, index) => index >= lane.head && task.id === id);
      const task = lane.tasks[at];
      if (task === undefined) continue;
      if (!mayRun(task)) return undefined;
      lane.tasks.splice(at, 1);
      this.#size--;
      this.#compact(lane);
      return { lane: lane.name, task };
    }
    return undefined;
  }

  #openHeads(node: NodeProfile, running: (lane: string) => number): Heap<OpenLane> {
    const heads = new Heap(byHead);
    for (const lane of this.#lanes.values()) {
      if (lane.head >= lane.tasks.length) continue;
      if (refusal(lane.executor, lane.placement, node) !== undefined) continue;
      const limit = lane.placement?.max_parallel_per_node;
      const room = limit === undefined ? Number.MAX_SAFE_INTEGER : limit - running(lane.name);
      if (room > 0) heads.push({ lane, room, place: -1 });
    }
    return heads;
  }

  #open(name: string, task: ReadyTask): Lane {
    const found = this.#lanes.get(name);
    if (found !== undefined && found.executor !== "") return found;
    const lane = emptyLane(name, task.executor, task.placement, found?.more ?? false);
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Drops what was taken: at once when the lane is empty, else when the dead part is the larger. */
  #compact(lane: Lane): void {
    if (lane.head === 0) {
      if (lane.tasks.length === 0 && !lane.more) this.#lanes.delete(lane.name);
      return;
    }
    if (lane.head === lane.tasks.length) {
      lane.tasks = [];
      lane.head = 0;
      if (!lane.more) this.#lanes.delete(lane.name);
    } else if (lane.head > 1_024 && lane.head * 2 > lane.tasks.length) {
      lane.tasks = lane.tasks.slice(lane.head);
      lane.head = 0;
    }
  }
}

interface OpenLane extends HeapItem {
  readonly lane: Lane;
  room: number;
}

/** The lane whose head comes first; two lanes never hold the same task. */
function byHead(a: OpenLane, b: OpenLane): boolean {
  return isAfter(headOf(b), headOf(a));
}

function headOf({ lane }: OpenLane): ReadyTask {
  const head = lane.tasks[lane.head];
  assert(head !== undefined, "an open lane has a head");
  return head;
}

function emptyLane(
  name: string,
  executor: string,
  placement: Placement | null,
  more: boolean,
): Lane {
  return { name, executor, placement, tasks: [], head: 0, more, end: LANE_START };
}

function compare(a: Position, b: Position): number {
  return b.priority - a.priority || a.id - b.id;
}

function isAfter(a: Position, b: Position): boolean {
  return compare(a, b) > 0;
}

/** Keeps the order; nearly always an append. A task that is there already is only brought up to date. */
function insert(lane: Lane, task: ReadyTask): boolean {
  const last = lane.tasks.length > lane.head ? lane.tasks.at(-1) : undefined;
  if (last === undefined || isAfter(task, last)) {
    lane.tasks.push(task);
    return true;
  }
  let low = lane.head;
  let high = lane.tasks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = lane.tasks[middle];
    assert(other !== undefined, "the middle is inside the lane");
    if (isAfter(task, other)) low = middle + 1;
    else high = middle;
  }
  const same = lane.tasks[low];
  if (same?.id === task.id) {
    if (same.attempt < task.attempt) lane.tasks[low] = task;
    return false;
  }
  lane.tasks.splice(low, 0, task);
  return true;
}
