/**
 * Tasks that transactions of applications insert into the database directly: the leader is notified of each commit, and
 * rereads everything after a gap in the notifications.
 */

import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import type { Work } from "../../host/background.ts";
import { type Database, sqlArray } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { type LeaderMemory, readyTask } from "./memory.ts";

const CHANNEL = "hyperscale_queue";
const RECONNECT_MS = 500;

interface ArrivalsOptions {
  readonly database: Database;
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly onReady: () => void;
  /** Tasks arrived that are not due, or depend on these. */
  readonly onWaiting: (dependsOn: readonly number[]) => void;
  /** Tasks may have been missed while the connection was down. */
  readonly onMissed: () => void;
}

export class Arrivals {
  readonly #options: ArrivalsOptions;
  #work: Work | undefined;
  #ids: number[] = [];
  #reading = false;

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  start(): void {
    const { database, writer } = this.#options;
    if (database.listen === undefined) return;
    this.#work = writer.background.run("hear of arrivals", async ({ signal }) => {
      while (!signal.aborted && !writer.ended) {
        await this.#listen(signal).catch(() => undefined);
        await writer.background.pause(RECONNECT_MS, signal);
      }
    });
  }

  stop(): void {
    this.#work?.cancel();
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const listening = await this.#options.database.listen?.(CHANNEL, (id) => this.#noticed(id));
    if (listening === undefined) return;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    try {
      await this.#reread();
      await Promise.race([listening.lost, aborted]);
    } finally {
      await listening.close().catch(() => undefined);
    }
  }

  /** Finds what was committed while the connection was down. */
  async #reread(): Promise<void> {
    const { writer, memory, onReady, onMissed } = this.#options;
    await this.#announceMissed();
    for (const row of await writer.read("lanes", []))
      memory.lanes.reopen(String(row["lane"]), Number(row["priority"]));
    onReady();
    onMissed();
  }

  async #announceMissed(): Promise<void> {
    const most = QUEUE_LIMITS.commitTasksMax;
    let count: number = most;
    while (count === most) {
      const rows = await this.#options.writer.read("arrivals-missed", [most]);
      for (const row of rows) this.#announce(Number(row["task_id"]));
      count = rows.length;
    }
  }

  #announce(taskId: number): void {
    const [from, to, nodeId] = [null, "QUEUED", null] as const;
    this.#options.memory.moved({ taskId, eventType: "created", from, to, nodeId, attempt: 1 });
  }

  #noticed(message: string): void {
    const id = Number(message);
    if (!Number.isSafeInteger(id)) return;
    this.#ids.push(id);
    if (this.#reading) return;
    this.#reading = true;
    this.#options.writer.background.run("read arrivals", () => this.#read());
  }

  async #read(): Promise<void> {
    const { writer, memory, onReady, onWaiting } = this.#options;
    try {
      while (this.#ids.length > 0) {
        const ids = this.#ids.splice(0, QUEUE_LIMITS.commitTasksMax);
        for (const row of await writer.read("arrived", [sqlArray(ids)])) {
          const task = readyTask(row, QUEUE_LIMITS.inlineInputBytesMax);
          if (row["fresh"] === true) this.#announce(task.id);
          if (row["queued"] !== true) continue;
          if (row["ready"] === true) memory.lanes.add(String(row["lane"]), task);
          else onWaiting((row["depends_on"] as readonly number[] | null) ?? []);
        }
        onReady();
      }
    } finally {
      this.#reading = false;
    }
  }
}
