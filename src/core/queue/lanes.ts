/**
 * Ready tasks in the leader's memory: one lane per executor and placement, each with one window per priority onto the
 * database, in the order of submission.
 *
 *     lane "http"            priority 5  [ 4 9 ]      all of it
 *                            priority 0  [ 1 7 8 … ]  more in the database after the last
 *     lane "gpu {cap:…}"     priority 0  [ 5 6 ]      all of it
 *
 * A node's claim merges the heads of the windows it may run, so the order over lanes is priority, then submission, and
 * a lane that no node can run never blocks another. (TQ-22, TQ-36) Low priorities do not starve: one in `AGED_SHARE`
 * tasks is the one that waited longest, once that has been longer than `AGED_MS`.
 *
 * The database stays the source of truth: every claim is checked there. A task is here at most once; an assigned one
 * returns only through `add`.
 */

import { assert } from "../base/assert.ts";
import { Heap, type HeapItem } from "../base/heap.ts";
import { QUEUE_LIMITS } from "./defaults.ts";
import { type NodeProfile, type Placement, refusal } from "./placement.ts";

/** Short queues follow priorities strictly; only tasks that wait longer than this count as aged. */
export const AGED_MS = 30_000;
/** One in this many tasks assigned while aged ones wait is the oldest. */
export const AGED_SHARE = 8;

export interface ReadyTask {
  readonly id: number;
  readonly executor: string;
  readonly queue: string;
  readonly priority: number;
  readonly attempt: number;
  readonly placement: Placement | null;
  /** Time limit of one execution; null for none. */
  readonly timeoutMs: number | null;
  /** Depends on other tasks, whose results are fetched with the claim. */
  readonly dependent: boolean;
  /** JSON text; undefined when it is too large to keep and is fetched with the claim. */
  readonly input: string | undefined;
  /** When it became ready, on the leader's monotonic clock: the start of the queue delay. */
  readonly readyAt: number;
}

/** A claim of one node. */
interface Take {
  readonly node: NodeProfile;
  readonly count: number;
  readonly now: number;
  /** Tasks of a lane that the node runs already. */
  readonly running: (lane: string) => number;
  /** Tasks of a named queue that may be assigned. */
  readonly queueRoom: (queue: string) => number;
  /** Limit on inputs, beyond the first task's. */
  readonly bytesMax?: number;
}

interface Taken {
  readonly lane: string;
  readonly task: ReadyTask;
}

interface Lane {
  readonly name: string;
  /** Empty until the first task sets it. */
  executor: string;
  queue: string;
  placement: Placement | null;
  readonly windows: Map<number, Window>;
}

interface Window {
  readonly priority: number;
  /** In order; `head` is the index of the first that remains. */
  tasks: ReadyTask[];
  head: number;
  /** The database may hold more tasks after the last one here. */
  more: boolean;
  /** The id at which the window ends while `more`: nothing after it may be added out of order. */
  end: number;
  /** Changes since the read of this window began, which its answer may lack; undefined without a read. */
  missed: Missed | undefined;
}

interface Missed {
  /** Tasks that became ready behind the end of the window; at most `tasksMax`. */
  tasks: ReadyTask[];
  /** The window has to be read again from the start. */
  reopened: boolean;
}

/** Position at which the database is to be read on. */
interface LowWindow {
  readonly lane: string;
  readonly priority: number;
  readonly after: number;
}

interface LanesOptions {
  /** Tasks per window. */
  readonly tasksMax: number;
  readonly refillBelow: number;
}

export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #options: LanesOptions;
  #size = 0;
  /** Tasks assigned since one was taken for its age. */
  #sinceAged = 0;

  constructor(options: LanesOptions) {
    assert(options.refillBelow <= options.tasksMax, "a lane is refilled below its size");
    this.#options = options;
  }

  /** Ready tasks in memory. */
  get size(): number {
    return this.#size;
  }

  has(name: string, priority: number): boolean {
    return this.#lanes.get(name)?.windows.has(priority) === true;
  }

  /** Adds a ready task. Behind a window that has more in the database it stays there. */
  add(name: string, task: ReadyTask): void {
    const window = this.#open(name, task);
    const last = window.tasks.at(-1);
    if (!window.more && last !== undefined && countOf(window) >= this.#options.tasksMax) {
      window.more = true;
      window.end = last.id;
    }
    if (window.more && task.id > window.end) this.#miss(window, task);
    else if (insert(window, task)) this.#size++;
  }

  /**
   * Starts a read of the windows that are running low; `refill` ends it for each. Changes in between are recorded,
   * because the database may have answered before they happened.
   */
  beginRefill(): readonly LowWindow[] {
    const low = this.lowWindows();
    for (const { lane, priority } of low)
      this.#window(this.#lane(lane), priority).missed = { tasks: [], reopened: false };
    return low;
  }

  /** Adds the database's answer to a refill of this window, in order. */
  refill(name: string, priority: number, tasks: readonly ReadyTask[], more: boolean): void {
    const first = tasks[0];
    if (first !== undefined) {
      const window = this.#open(name, first);
      for (const task of tasks) {
        if (insert(window, task)) this.#size++;
      }
    }
    const lane = this.#lanes.get(name);
    const window = lane?.windows.get(priority);
    if (lane === undefined || window === undefined) return;
    const { missed } = window;
    window.missed = undefined;
    window.end = Math.max(window.end, tasks.at(-1)?.id ?? 0);
    window.more = more;
    for (const task of missed?.tasks ?? []) this.add(name, task);
    if (missed?.reopened === true) this.reopen(name, priority);
    this.#compact(lane, window);
  }

  /** Marks a lane as incomplete: it is read again from the start. */
  reopen(name: string, priority: number): void {
    const window = this.#window(this.#lane(name), priority);
    window.more = true;
    window.end = 0;
    if (window.missed !== undefined) window.missed.reopened = true;
  }

  /** The task is in the database only. A read that began before may not find it there. */
  #miss({ missed }: Window, task: ReadyTask): void {
    if (missed === undefined) return;
    if (missed.tasks.length < this.#options.tasksMax) missed.tasks.push(task);
    else missed.reopened = true;
  }

  /** Windows that are running low while the database may hold more, with the position to read from. */
  lowWindows(): readonly LowWindow[] {
    const low: LowWindow[] = [];
    for (const { name: lane, windows } of this.#lanes.values()) {
      for (const window of windows.values()) {
        if (window.more && countOf(window) < this.#options.refillBelow)
          low.push({ lane, priority: window.priority, after: window.end });
      }
    }
    return low;
  }

  /** Takes up to `count` tasks that this node may run: highest priority, then oldest first. */
  take(ask: Take): Taken[] {
    const { count, bytesMax = Number.POSITIVE_INFINITY } = ask;
    const taken: Taken[] = [];
    const heads = this.#openHeads(ask);
    const agedBefore = ask.now - AGED_MS;
    let bytes = 0;
    while (taken.length < count) {
      const open = this.#nextOf(heads, agedBefore);
      if (open === undefined) break;
      if (isFull(open)) continue;
      const { lane, window } = open;
      const task = headOf(open);
      bytes += task.input === undefined ? QUEUE_LIMITS.payloadBytesMax : task.input.length;
      if (task.dependent) bytes += QUEUE_LIMITS.dependencyBytesMax;
      if (taken.length > 0 && bytes > bytesMax) break;
      window.head++;
      open.room.left--;
      open.queueRoom.left--;
      this.#size--;
      this.#sinceAged++;
      taken.push({ lane: lane.name, task });
      if (window.head < window.tasks.length) heads.push(open);
    }
    for (const lane of this.#lanes.values())
      for (const window of lane.windows.values()) this.#compact(lane, window);
    return taken;
  }

  /** The first ids a node could claim now, without taking them. */
  peek(node: NodeProfile, count: number): readonly ReadyTask[] {
    const tasks: ReadyTask[] = [];
    for (const lane of this.#lanes.values()) {
      if (refusal(lane.executor, lane.placement, node) !== undefined) continue;
      for (const { tasks: all, head } of lane.windows.values())
        tasks.push(...all.slice(head, head + count));
    }
    return tasks.sort((a, b) => b.priority - a.priority || a.id - b.id).slice(0, count);
  }

  /** Takes one task by id, if it is here and this node may run it. */
  takeById(id: number, mayRun: (task: ReadyTask) => boolean): Taken | undefined {
    for (const lane of this.#lanes.values()) {
      for (const window of lane.windows.values()) {
        const at = placeOf(window, id);
        const task = window.tasks[at];
        if (task?.id !== id) continue;
        if (!mayRun(task)) return undefined;
        window.tasks.splice(at, 1);
        this.#size--;
        this.#compact(lane, window);
        return { lane: lane.name, task };
      }
    }
    return undefined;
  }

  /** Window to take from: by priority, or in its turn the one whose head is the oldest. */
  #nextOf(heads: Heap<OpenWindow>, agedBefore: number): OpenWindow | undefined {
    if (this.#sinceAged < AGED_SHARE - 1 || heads.size < 2) return heads.pop();
    let oldest: OpenWindow | undefined;
    for (const open of heads.items()) {
      const { readyAt } = headOf(open);
      if (readyAt > agedBefore || isFull(open)) continue;
      if (oldest === undefined || readyAt < headOf(oldest).readyAt) oldest = open;
    }
    if (oldest === undefined) return heads.pop();
    this.#sinceAged = -1;
    heads.remove(oldest);
    return oldest;
  }

  #openHeads({ node, running, queueRoom }: Take): Heap<OpenWindow> {
    const heads = new Heap(byHead);
    const queues = new Map<string, Room>();
    for (const lane of this.#lanes.values()) {
      if (refusal(lane.executor, lane.placement, node) !== undefined) continue;
      const limit = lane.placement?.max_parallel_per_node;
      const left = limit === undefined ? Number.MAX_SAFE_INTEGER : limit - running(lane.name);
      if (left <= 0) continue;
      const ofQueue = queues.get(lane.queue) ?? { left: queueRoom(lane.queue) };
      queues.set(lane.queue, ofQueue);
      if (ofQueue.left <= 0) continue;
      const rooms = { room: { left }, queueRoom: ofQueue };
      for (const window of lane.windows.values()) {
        if (window.head < window.tasks.length) heads.push({ lane, window, ...rooms, place: -1 });
      }
    }
    return heads;
  }

  #lane(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { name, executor: "", queue: "", placement: null, windows: new Map() };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  #window(lane: Lane, priority: number): Window {
    let window = lane.windows.get(priority);
    if (window === undefined) {
      window = { priority, tasks: [], head: 0, more: false, end: 0, missed: undefined };
      lane.windows.set(priority, window);
    }
    return window;
  }

  #open(name: string, task: ReadyTask): Window {
    const lane = this.#lane(name);
    lane.executor = task.executor;
    lane.queue = task.queue;
    lane.placement = task.placement;
    return this.#window(lane, task.priority);
  }

  /** Drops taken tasks: at once when the window is empty, else when they are the larger part. */
  #compact(lane: Lane, window: Window): void {
    if (window.head === window.tasks.length) {
      window.tasks = [];
      window.head = 0;
      if (window.more) return;
      lane.windows.delete(window.priority);
      if (lane.windows.size === 0) this.#lanes.delete(lane.name);
    } else if (window.head > 1_024 && window.head * 2 > window.tasks.length) {
      window.tasks = window.tasks.slice(window.head);
      window.head = 0;
    }
  }
}

interface OpenWindow extends HeapItem {
  readonly lane: Lane;
  readonly window: Window;
  /** Capacity of the node for the lane, shared by its windows. */
  readonly room: Room;
  /** Capacity of the queue, shared by its lanes. */
  readonly queueRoom: Room;
}

interface Room {
  left: number;
}

function isFull({ room, queueRoom }: OpenWindow): boolean {
  return room.left <= 0 || queueRoom.left <= 0;
}

/** Highest priority, then oldest; two windows never hold the same task. */
function byHead(a: OpenWindow, b: OpenWindow): boolean {
  const byPriority = b.window.priority - a.window.priority;
  return byPriority === 0 ? headOf(a).id < headOf(b).id : byPriority < 0;
}

function headOf({ window }: OpenWindow): ReadyTask {
  const head = window.tasks[window.head];
  assert(head !== undefined, "an open window has a head");
  return head;
}

function countOf({ tasks, head }: Pick<Window, "tasks" | "head">): number {
  return tasks.length - head;
}

/** Index of the task with this id, or where it would be. */
function placeOf(window: Window, id: number): number {
  let low = window.head;
  let high = window.tasks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = window.tasks[middle];
    assert(other !== undefined, "the middle is inside the window");
    if (id > other.id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Keeps the order; nearly always an append. An existing task is only updated. */
function insert(window: Window, task: ReadyTask): boolean {
  const last = countOf(window) > 0 ? window.tasks.at(-1) : undefined;
  if (last === undefined || task.id > last.id) {
    window.tasks.push(task);
    return true;
  }
  const at = placeOf(window, task.id);
  const same = window.tasks[at];
  if (same?.id === task.id) {
    if (same.attempt < task.attempt) window.tasks[at] = task;
    return false;
  }
  window.tasks.splice(at, 0, task);
  return true;
}
