import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AGED_MS, AGED_SHARE, Lanes, type ReadyTask } from "./lanes.ts";
import { laneOf, type NodeProfile, type Placement } from "./placement.ts";

const task = (
  id: number,
  priority = 0,
  placement: Placement | null = null,
  executor = "e",
): ReadyTask => ({
  id,
  executor,
  queue: "default",
  priority,
  attempt: 1,
  placement,
  timeoutMs: null,
  dependent: false,
  input: "null",
  readyAt: 0,
});
const node: NodeProfile = { nodeId: "n", executors: ["e", "f"], capabilities: {} };
const ids = (taken: readonly { readonly task: ReadyTask }[]): number[] =>
  taken.map((one) => one.task.id);
const free = (): number => Number.MAX_SAFE_INTEGER;
const take = (
  lanes: Lanes,
  count: number,
  running: (lane: string) => number = () => 0,
  by: NodeProfile = node,
) => lanes.take({ node: by, count, running, queueRoom: free, now: 0 });
const lanesOf = (tasksMax = 100): Lanes => new Lanes({ tasksMax, refillBelow: tasksMax / 2 });

/** Tasks per read of the database. */
const READ_LIMIT = 2;

describe("Lanes", () => {
  it("assigns by priority, then in order of submission, over several lanes (TQ-22)", () => {
    const lanes = lanesOf();
    lanes.add("e", task(1));
    lanes.add("f", task(2, 0, null, "f"));
    lanes.add("e", task(3, 7));
    lanes.add("f", task(4, 0, null, "f"));
    lanes.add("e", task(5));
    expect(ids(take(lanes, 3))).toEqual([3, 1, 2]);
    expect(ids(take(lanes, 9))).toEqual([4, 5]);
    expect(lanes.size).toBe(0);
  });

  it("skips tasks that the node may not run, without blocking the rest", () => {
    const lanes = lanesOf();
    const elsewhere = { allowed_nodes: ["other"] };
    lanes.add(laneOf("e", elsewhere), task(1, 9, elsewhere));
    lanes.add("e", task(2));
    expect(ids(take(lanes, 5))).toEqual([2]);
    expect(lanes.size).toBe(1);
    expect(ids(take(lanes, 5, undefined, { ...node, nodeId: "other" }))).toEqual([1]);
  });

  it("respects max_parallel_per_node, counting running tasks (TQ-36)", () => {
    const lanes = lanesOf();
    const placement = { max_parallel_per_node: 3 };
    const name = laneOf("e", placement);
    for (let id = 1; id <= 5; id++) lanes.add(name, task(id, 0, placement));
    expect(ids(take(lanes, 5, () => 2))).toEqual([1]);
    expect(ids(take(lanes, 5, () => 3))).toEqual([]);
    expect(ids(take(lanes, 5))).toEqual([2, 3, 4]);
  });

  it("leaves tasks beyond a full window in the database and reads on from its end", () => {
    const lanes = lanesOf(4);
    for (let id = 1; id <= 6; id++) lanes.add("e", task(id));
    expect(lanes.size).toBe(4);
    expect(ids(take(lanes, 3))).toEqual([1, 2, 3]);
    expect(lanes.lowWindows()).toEqual([{ lane: "e", priority: 0, after: 4 }]);
    lanes.refill("e", 0, [task(5), task(6)], false);
    expect(lanes.lowWindows()).toEqual([]);
    expect(ids(take(lanes, 9))).toEqual([4, 5, 6]);
  });

  it("reads a reopened lane from its start and adds nothing twice", () => {
    const lanes = lanesOf();
    lanes.add("e", task(2));
    lanes.reopen("e", 0);
    expect(lanes.lowWindows()).toEqual([{ lane: "e", priority: 0, after: 0 }]);
    lanes.refill("e", 0, [task(1), task(2)], false);
    expect(ids(take(lanes, 9))).toEqual([1, 2]);
  });

  it("keeps a task that becomes ready during a read, when the answer lacks it", () => {
    const lanes = lanesOf();
    lanes.reopen("e", 0);
    expect(lanes.beginRefill()).toEqual([{ lane: "e", priority: 0, after: 0 }]);
    lanes.add("e", { ...task(2), attempt: 2 });
    lanes.refill("e", 0, [task(1), task(3)], false);
    expect(ids(take(lanes, 9))).toEqual([1, 2, 3]);
    expect(lanes.lowWindows()).toEqual([]);
  });

  it("leaves a task that becomes ready after a partial answer in the database", () => {
    const lanes = lanesOf(4);
    lanes.reopen("e", 0);
    lanes.beginRefill();
    lanes.add("e", task(9));
    lanes.refill("e", 0, [task(1), task(2)], true);
    expect(ids(take(lanes, 9))).toEqual([1, 2]);
    expect(lanes.lowWindows()).toEqual([{ lane: "e", priority: 0, after: 2 }]);
  });

  it("reads a lane again that was reopened during a read", () => {
    const lanes = lanesOf();
    lanes.reopen("e", 0);
    lanes.beginRefill();
    lanes.reopen("e", 0);
    lanes.refill("e", 0, [task(3)], false);
    expect(lanes.lowWindows()).toEqual([{ lane: "e", priority: 0, after: 0 }]);
  });

  it("reads a lane again when more tasks became ready during a read than it keeps", () => {
    const lanes = lanesOf(4);
    lanes.reopen("e", 0);
    lanes.beginRefill();
    for (let id = 1; id <= 5; id++) lanes.add("e", task(id));
    lanes.refill("e", 0, [], false);
    expect(ids(take(lanes, 9))).toEqual([1, 2, 3, 4]);
    expect(lanes.lowWindows()).toEqual([{ lane: "e", priority: 0, after: 0 }]);
  });

  it("keeps the later attempt of a duplicate task, and counts it once", () => {
    const lanes = lanesOf();
    lanes.add("e", task(1));
    lanes.add("e", { ...task(1), attempt: 2 });
    lanes.add("e", task(1));
    expect(lanes.size).toBe(1);
    expect(take(lanes, 9).map((one) => one.task.attempt)).toEqual([2]);
    expect(lanes.size).toBe(0);
  });

  it("takes a task by id only where it may run, and peeks without taking", () => {
    const lanes = lanesOf();
    lanes.add("e", task(1));
    lanes.add("e", task(2, 1));
    expect(lanes.peek(node, 5).map((one) => one.id)).toEqual([2, 1]);
    expect(lanes.takeById(1, () => false)).toBeUndefined();
    expect(lanes.takeById(1, () => true)?.task.id).toBe(1);
    expect(lanes.takeById(1, () => true)).toBeUndefined();
    expect(lanes.size).toBe(1);
  });

  it("shares max_parallel_per_node among the priorities of a lane", () => {
    const lanes = lanesOf();
    const placement = { max_parallel_per_node: 2 };
    const name = laneOf("e", placement);
    for (let id = 1; id <= 4; id++) lanes.add(name, task(id, id, placement));
    expect(ids(take(lanes, 5))).toEqual([4, 3]);
  });

  it("respects the limits of a queue over its lanes, and continues with the others", () => {
    const lanes = lanesOf();
    for (let id = 1; id <= 6; id++) {
      const executor = id % 2 === 0 ? "e" : "f";
      lanes.add(laneOf(executor, null, "mail"), {
        ...task(id, 9, null, executor),
        queue: "mail",
      });
    }
    lanes.add("e", task(7));
    const queueRoom = (queue: string): number => (queue === "mail" ? 3 : 100);
    const taken = lanes.take({ node, count: 9, running: () => 0, queueRoom, now: 0 });
    expect(ids(taken)).toEqual([1, 2, 3, 7]);
    expect(lanes.size).toBe(3);
  });

  it("assigns a low priority that waited long in its share, and no sooner", () => {
    const lanes = lanesOf();
    lanes.add("e", { ...task(1, -5), readyAt: 0 });
    for (let id = 2; id <= 40; id++) lanes.add("e", { ...task(id, 5), readyAt: AGED_MS });
    const handOut = (now: number) =>
      ids(lanes.take({ node, count: AGED_SHARE * 2, running: () => 0, queueRoom: free, now }));
    expect(handOut(AGED_MS - 1)).not.toContain(1);
    expect(handOut(AGED_MS)).toContain(1);
  });

  it("gives the oldest no more than its share while higher priorities wait", () => {
    const lanes = lanesOf(1_000);
    for (let id = 1; id <= 100; id++) lanes.add("e", { ...task(id, 0), readyAt: 0 });
    for (let id = 101; id <= 300; id++) lanes.add("e", { ...task(id, 9), readyAt: 2 * AGED_MS });
    const count = AGED_SHARE * 10;
    const taken = ids(
      lanes.take({ node, count, running: () => 0, queueRoom: free, now: 2 * AGED_MS }),
    );
    expect(taken.filter((id) => id <= 100)).toHaveLength(10);
  });

  it("agrees with a sorted list for any mix of adds and takes", () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: -2, max: 2 }), lane: fc.constantFrom("e", "f") }),
      fc.record({ take: fc.integer({ min: 1, max: 4 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const lanes = lanesOf(1_000);
        let model: { id: number; priority: number }[] = [];
        let next = 0;
        for (const one of steps) {
          if ("add" in one) {
            const added = task(++next, one.add, null, one.lane);
            lanes.add(one.lane, added);
            model.push(added);
          } else {
            model.sort((a, b) => b.priority - a.priority || a.id - b.id);
            const expected = model.slice(0, one.take).map(({ id }) => id);
            model = model.slice(one.take);
            expect(ids(take(lanes, one.take))).toEqual(expected);
          }
        }
        expect(lanes.size).toBe(model.length);
      }),
    );
  });

  it("assigns every ready task of the database, however reads, reopenings and returns overlap", () => {
    const step = fc.constantFrom("submit", "take", "give back", "reopen", "begin", "answer", "end");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = new StoreModel(lanesOf(4));
        for (const one of steps) store.perform(one);
        store.drain();
        expect(store.queued).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

type Step = "submit" | "take" | "give back" | "reopen" | "begin" | "answer" | "end";

/** A database with one lane and delayed reads: the answer is from a time between `begin` and `end`, at `answer`. */
class StoreModel {
  readonly #lanes: Lanes;
  readonly #ready = new Map<number, number>();
  readonly #running = new Map<number, number>();
  #next = 0;
  #read: { after: number; answer: ReadyTask[] | undefined } | undefined;

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  get queued(): readonly number[] {
    return [...this.#ready.keys()];
  }

  perform(step: Step): void {
    if (step === "submit") this.#makeReady(++this.#next, 1);
    else if (step === "take") this.#take();
    else if (step === "give back") this.#giveBack();
    else if (step === "reopen") this.#lanes.reopen("e", 0);
    else if (step === "begin") this.#begin();
    else if (step === "answer") this.#answer();
    else this.#end();
  }

  /** Reads and takes until the lanes are empty. */
  drain(): void {
    this.#end();
    for (let round = 0; round < 1_000 && (this.#begin() || this.#lanes.size > 0); round++) {
      this.#end();
      this.#take();
    }
  }

  #makeReady(id: number, attempt: number): void {
    this.#ready.set(id, attempt);
    this.#lanes.add("e", { ...task(id), attempt });
  }

  /** Models a claim: a task that is not ready with this attempt is read again. */
  #take(): void {
    for (const { task: taken } of take(this.#lanes, 2)) {
      if (this.#ready.get(taken.id) !== taken.attempt) this.#lanes.reopen("e", 0);
      else {
        this.#ready.delete(taken.id);
        this.#running.set(taken.id, taken.attempt);
      }
    }
  }

  #giveBack(): void {
    const [first] = this.#running;
    if (first === undefined) return;
    this.#running.delete(first[0]);
    this.#makeReady(first[0], first[1] + 1);
  }

  #begin(): boolean {
    const [low] = this.#read === undefined ? this.#lanes.beginRefill() : [];
    if (low !== undefined) this.#read = { after: low.after, answer: undefined };
    return low !== undefined;
  }

  #answer(): void {
    if (this.#read === undefined || this.#read.answer !== undefined) return;
    const { after } = this.#read;
    this.#read.answer = [...this.#ready]
      .filter(([id]) => id > after)
      .sort(([a], [b]) => a - b)
      .slice(0, READ_LIMIT)
      .map(([id, attempt]) => ({ ...task(id), attempt }));
  }

  #end(): void {
    this.#answer();
    const tasks = this.#read?.answer;
    this.#read = undefined;
    if (tasks !== undefined) this.#lanes.refill("e", 0, tasks, tasks.length === READ_LIMIT);
  }
}
