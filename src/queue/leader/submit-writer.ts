/**
 * The leader's submit writer: batches of new tasks in one statement each.
 *
 * Ids are allocated before the insert, so repeating a batch whose commit was lost inserts it once. Rows that the
 * database skips have a key of another task; they are looked up afterwards and answered with that task, or rejected
 * when the same key comes with other content. (TQ-26) A graph is a statement of its own: all of its rows are inserted,
 * or none.
 */

import { performance } from "node:perf_hooks";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { DatabaseUnavailable, QueueError } from "../../core/queue/errors.ts";
import type { NewGraph, NewTask, Submitted, SubmittedGraph } from "../api/types.ts";
import { type ConnectionName, sqlArray, sqlColumn } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { GroupCommit } from "../store/group-commit.ts";
import type { LeaderMemory } from "./memory.ts";

export type SubmitAnswer = Submitted | { readonly refused: QueueError };

interface TasksOperation {
  readonly kind: "tasks";
  readonly tasks: readonly NewTask[];
  readonly resolve: (answers: readonly SubmitAnswer[]) => void;
  readonly reject: (error: unknown) => void;
}

interface GraphOperation {
  readonly kind: "graph";
  readonly graph: NewGraph;
  readonly resolve: (answer: SubmittedGraph) => void;
  readonly reject: (error: unknown) => void;
}

type SubmitOperation = TasksOperation | GraphOperation;

interface Wait {
  readonly on: number;
  /** Name in its graph. */
  readonly name: string | undefined;
}

interface Row {
  readonly id: number;
  readonly task: NewTask;
  readonly waits: readonly Wait[];
}

interface SubmitWriterOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly nodeId: string;
  /** New tasks are ready: match them with waiting workers. */
  readonly onReady: () => void;
  /** Tasks with a time or with dependencies arrived. */
  readonly onWaiting: (dependsOn: readonly number[]) => void;
}

/** Parameters of a batch without a graph: key, content and names. */
const NO_GRAPH = [null, null, null];

export class SubmitWriter {
  readonly #options: SubmitWriterOptions;
  readonly #commit: GroupCommit<SubmitOperation>;
  #blocks: { next: number; end: number }[] = [];

  constructor(options: SubmitWriterOptions) {
    this.#options = options;
    this.#commit = new GroupCommit({
      write: (batch, writer) => this.#write(batch, writer === 0 ? "submit" : "submit beside"),
      // A graph fills a batch, so that it is alone in it.
      weigh: (operation) =>
        operation.kind === "tasks"
          ? operation.tasks.length
          : Math.max(operation.graph.tasks.length, QUEUE_LIMITS.commitTasksMax),
      batchMax: QUEUE_LIMITS.commitTasksMax,
      pendingMax: QUEUE_LIMITS.pendingOperationsMax,
      background: options.writer.background,
      // Only submits that arrived while the first batch is under way: their order is not guaranteed.
      secondWriterAbove: QUEUE_LIMITS.commitTasksMax / 2,
    });
  }

  submit(tasks: readonly NewTask[]): Promise<readonly SubmitAnswer[]> {
    if (tasks.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) =>
      this.#commit.add({ kind: "tasks", tasks, resolve, reject }),
    );
  }

  submitGraph(graph: NewGraph): Promise<SubmittedGraph> {
    return new Promise((resolve, reject) =>
      this.#commit.add({ kind: "graph", graph, resolve, reject }),
    );
  }

  async takeIds(count: number): Promise<readonly number[]> {
    for (;;) {
      const left = this.#blocks.reduce((sum, block) => sum + block.end - block.next, 0);
      if (left >= count) break;
      const blocks = Math.ceil((count - left) / QUEUE_LIMITS.idBlock);
      const rows = await this.#options.writer.read("ids-take", [blocks]);
      for (const row of rows) {
        const first = Number(row["first"]);
        this.#blocks.push({ next: first, end: first + QUEUE_LIMITS.idBlock });
      }
    }
    const ids: number[] = [];
    while (ids.length < count) {
      const block = this.#blocks[0];
      if (block === undefined) throw new Error("the database gave no ids");
      while (ids.length < count && block.next < block.end) ids.push(block.next++);
      if (block.next === block.end) this.#blocks.shift();
    }
    return ids;
  }

  /** The rest of the last block of ids: its first unused id, and where the block begins; null: nothing is left. */
  get unusedIds(): readonly [next: number, first: number] | null {
    const block = this.#blocks.at(-1);
    if (block === undefined || this.#blocks.length > 1) return null;
    return [block.next, block.end - QUEUE_LIMITS.idBlock];
  }

  async #write(batch: readonly SubmitOperation[], connection: ConnectionName): Promise<void> {
    for (const operation of batch) {
      if (operation.kind === "graph") await this.#writeGraph(operation, connection);
    }
    const others = batch.filter((operation) => operation.kind === "tasks");
    if (others.length > 0) await this.#writeTasks(others, connection);
  }

  async #writeGraph(operation: GraphOperation, connection: ConnectionName): Promise<void> {
    try {
      operation.resolve(await this.#insertGraph(operation.graph, connection));
    } catch (error) {
      operation.reject(error);
    }
  }

  async #writeTasks(batch: readonly TasksOperation[], connection: ConnectionName): Promise<void> {
    try {
      const answers = await this.#insert(
        batch.flatMap((operation) => operation.tasks),
        connection,
      );
      let from = 0;
      for (const operation of batch) {
        operation.resolve(answers.slice(from, from + operation.tasks.length));
        from += operation.tasks.length;
      }
    } catch (error) {
      if (batch.length === 1 || error instanceof QueueError) {
        for (const operation of batch) operation.reject(error);
        return;
      }
      // The database rejected something in the batch: bisect to find it, and let the others through.
      const middle = batch.length >> 1;
      await this.#writeTasks(batch.slice(0, middle), connection);
      await this.#writeTasks(batch.slice(middle), connection);
    }
  }

  async #insert(
    tasks: readonly NewTask[],
    connection: ConnectionName,
  ): Promise<readonly SubmitAnswer[]> {
    const ids = await this.takeIds(tasks.length);
    const rows = tasks.map((task, index): Row => {
      const waits = [...new Set(task.dependsOn)].map((on) => ({ on, name: undefined }));
      return { id: ids[index] ?? 0, task, waits };
    });
    const row = await this.#send(rows, connection);
    const whole = Number(row["changed"]) === rows.length;
    const answers = whole ? rows.map(created) : await this.#settle(rows);
    this.#added(whole ? rows : rows.filter((_, index) => isCreated(answers[index])));
    return answers;
  }

  async #insertGraph(graph: NewGraph, connection: ConnectionName): Promise<SubmittedGraph> {
    const { writer, nodeId } = this.#options;
    const { names, after, idempotencyKey: key } = graph;
    const ids = await this.takeIds(graph.tasks.length);
    const rows = graph.tasks.map((task, index): Row => {
      const inside = (after[index] ?? []).map((at) => ({ on: ids[at] ?? 0, name: names[at] }));
      const outside = [...new Set(task.dependsOn)].map((on) => ({ on, name: undefined }));
      return { id: ids[index] ?? 0, task, waits: [...inside, ...outside] };
    });
    const parameters = [
      ...submitParameters(rows, nodeId),
      sqlArray(rows.flatMap(({ waits }) => waits.map(({ name }) => name))),
      ...[key ?? null, graph.contentHash, sqlArray(names)],
    ];
    const { row } = await writer.write(connection, "submit", parameters);
    const mine = { ids: new Map(names.map((name, at) => [name, ids[at] ?? 0])), created: true };
    const changed = Number(row["changed"]);
    const earlier = changed === rows.length ? undefined : await this.#graphOfKey(graph);
    if (earlier !== undefined && earlier.ids.get(names[0] ?? "") !== ids[0]) return earlier;
    // Inserted now, or by an attempt whose answer was lost.
    this.#added(rows);
    return mine;
  }

  /** The graph that has the key; undefined without one. */
  async #graphOfKey({
    idempotencyKey,
    contentHash,
  }: NewGraph): Promise<SubmittedGraph | undefined> {
    if (idempotencyKey === undefined) return undefined;
    const [row] = await this.#options.writer.read("graph-of-key", [idempotencyKey]);
    if (row === undefined) {
      const words = "the graph with this key is removed just now; submit again";
      throw new QueueError("UNAVAILABLE", words);
    }
    if (row["content_hash"] !== contentHash) {
      const whose = `idempotency_key "${idempotencyKey}" belongs to a graph`;
      throw new QueueError("CONFLICT", `${whose} that was submitted with other content`);
    }
    const ids = row["ids"] as readonly unknown[];
    const names = row["names"] as readonly string[];
    return { ids: new Map(names.map((name, at) => [name, Number(ids[at])])), created: false };
  }

  /** Rows that are now in the database: puts runnable ones in their lanes. */
  #added(rows: readonly Row[]): void {
    const { memory } = this.#options;
    const dependsOn: number[] = [];
    let ready = false;
    let waiting = false;
    for (const { id, task, waits } of rows) {
      memory.moved({
        taskId: id,
        eventType: "created",
        from: null,
        to: "QUEUED",
        nodeId: this.#options.nodeId,
        attempt: 1,
      });
      if (waits.length > 0 || isTimed(task)) {
        waiting = true;
        for (const { on } of waits) dependsOn.push(on);
        // A task that was due already is ready in the database.
        if (waits.length === 0) memory.lanes.reopen(task.lane, task.priority);
        continue;
      }
      ready = true;
      this.#addReady(id, task);
    }
    if (waiting) this.#options.onWaiting(dependsOn);
    if (ready || waiting) this.#options.onReady();
  }

  /** The first attempt of a batch without keys need not check for conflicts. */
  async #send(
    rows: readonly Row[],
    connection: ConnectionName,
  ): Promise<Readonly<Record<string, unknown>>> {
    const { writer, nodeId } = this.#options;
    const parameters = submitParameters(rows, nodeId);
    const keyed = rows.some(
      ({ task }) => task.idempotencyKey !== undefined || task.uniqueKey !== undefined,
    );
    if (!keyed) {
      try {
        return await writer.once(connection, "submit-fresh", parameters);
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error;
        await writer.pause("submit-fresh", 0, error);
      }
    }
    const names = sqlArray(rows.flatMap(({ waits }) => waits.map(({ name }) => name)));
    const given = [...parameters, names, ...NO_GRAPH];
    return (await writer.write(connection, "submit", given)).row;
  }

  #addReady(id: number, task: NewTask): void {
    const inline = task.input.length <= QUEUE_LIMITS.inlineInputBytesMax;
    this.#options.memory.lanes.add(task.lane, {
      id,
      executor: task.executor,
      queue: task.queue,
      priority: task.priority,
      attempt: 1,
      placement: task.placement,
      timeoutMs: task.attemptTimeoutMs ?? null,
      dependent: false,
      input: inline ? task.input : undefined,
      readyAt: performance.now(),
    });
  }

  /** Some rows were not inserted now: an earlier attempt did, or their keys exist. */
  async #settle(rows: readonly Row[]): Promise<readonly SubmitAnswer[]> {
    const found = await this.#options.writer.read("submitted", [
      sqlArray(rows.map(({ id }) => id)),
      sqlArray(rows.flatMap(({ task }) => task.idempotencyKey ?? [])),
      sqlArray(rows.flatMap(({ task }) => task.uniqueKey ?? [])),
    ]);
    const ids = new Set(found.map((row) => Number(row["id"])));
    const byKey = new Map(found.map((row) => [row["idempotency_key"], row]));
    const byUnique = new Map(
      found.filter((row) => row["finished"] !== true).map((row) => [row["unique_key"], row]),
    );
    return rows.map((row): SubmitAnswer => {
      if (ids.has(row.id)) return created(row);
      const { idempotencyKey, contentHash, uniqueKey } = row.task;
      const same = idempotencyKey === undefined ? undefined : byKey.get(idempotencyKey);
      if (same !== undefined && same["content_hash"] !== contentHash) {
        return {
          refused: new QueueError(
            "CONFLICT",
            `idempotency_key "${idempotencyKey}" belongs to task ${same["id"]}, which was submitted with other content`,
            { data: { task_id: String(same["id"]) } },
          ),
        };
      }
      const other = same ?? (uniqueKey === undefined ? undefined : byUnique.get(uniqueKey));
      if (other !== undefined) return { id: Number(other["id"]), created: false };
      // The holder of the unique key finished between the two statements.
      return {
        refused: new QueueError(
          "UNAVAILABLE",
          "the task with this key has just ended; submit again",
        ),
      };
    });
  }
}

function isCreated(answer: SubmitAnswer | undefined): boolean {
  return answer !== undefined && "created" in answer && answer.created;
}

function created(row: Row): Submitted {
  return { id: row.id, created: true };
}

function isTimed({ runAfter, delayMs }: NewTask): boolean {
  return runAfter !== undefined || delayMs !== undefined;
}

function submitParameters(rows: readonly Row[], nodeId: string): readonly unknown[] {
  const column = (of: (row: Row) => string | number | null | undefined): string =>
    sqlColumn(rows, of);
  const waits = rows.flatMap(({ id, waits: of }) => of.map(({ on }) => ({ id, on })));
  return [
    column(({ id }) => id),
    column(({ task }) => task.executor),
    column(({ task }) => task.lane),
    column(({ task }) => task.priority),
    column(({ task }) => task.maxAttempts),
    column(({ task }) => task.input),
    column(({ task }) => task.idempotencyKey),
    column(({ task }) => task.contentHash),
    column(({ task }) => task.uniqueKey),
    column(({ task }) => (task.placement === null ? null : JSON.stringify(task.placement))),
    column(({ task }) => task.runAfter),
    column(({ waits: of }) => of.length),
    column(({ task }) => task.delayMs),
    nodeId,
    sqlArray(waits.map(({ id }) => id)),
    sqlArray(waits.map(({ on }) => on)),
    column(({ task }) => task.attemptTimeoutMs),
    column(({ task }) => task.timeoutMs),
    column(({ task }) => task.queue),
    column(({ task }) => (task.backoff === null ? null : JSON.stringify(task.backoff))),
  ];
}
