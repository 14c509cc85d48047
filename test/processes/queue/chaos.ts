/**
 * Chaos: tasks over several worker processes while they are killed and stopped past their lease, and
 * while PostgreSQL crashes under all of them. Then the committed history is audited.
 *
 *     npm run chaos:queue [-- --seconds 180 --tasks 20000 --workers 4 --restarts 2]
 *
 * The tests run a shorter form of the same function.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Random } from "../../../src/core/base/random.ts";
import { QueueClient } from "../../../src/queue/index.ts";
import { type AuditResult, audit } from "./audit.ts";
import { eventually, fastEnvironment, NodeProcess } from "./fixtures.ts";
import type { TestPostgres } from "./server.ts";

interface ChaosOptions {
  readonly server: TestPostgres;
  readonly seconds: number;
  readonly tasks: number;
  readonly workers: number;
  readonly restarts: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}

interface ChaosResult extends AuditResult {
  readonly acknowledged: number;
  readonly kills: number;
  readonly stalls: number;
  readonly restarts: number;
}

const LEASE_MS = 2_000;
const SUBMIT_BATCH = 200;

export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const run = new ChaosRun(options, await options.server.createDatabase());
  try {
    return await run.play();
  } finally {
    await run.end();
  }
}

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #database: string;
  readonly #random: Random;
  readonly #nodes: (NodeProcess | undefined)[] = [];
  #kills = 0;
  #stalls = 0;
  #restarts = 0;
  #started = 0;

  constructor(options: ChaosOptions, database: string) {
    this.#options = options;
    this.#database = database;
    this.#random = new Random(options.seed);
  }

  async play(): Promise<ChaosResult> {
    const { seconds, workers, restarts, tasks, say } = this.#options;
    for (let i = 0; i < workers; i++) this.#start(i);
    await Promise.all(this.#nodes.map((node) => node?.ready));
    const until = Date.now() + seconds * 1_000;
    const submitting = this.#submitAll(tasks, seconds * 600);
    const crashAt = Array.from(
      { length: restarts },
      (_, i) => Date.now() + ((i + 1) * seconds * 1_000) / (restarts + 1),
    );
    while (Date.now() < until) {
      await sleep(1_000);
      const next = crashAt[0];
      if (next !== undefined && Date.now() >= next) {
        crashAt.shift();
        await this.#crashDatabase();
      }
      this.#hurt();
    }
    await sleep(LEASE_MS * 2);
    this.#revive();
    const acknowledged = await submitting;
    say(
      `faults end: ${this.#kills} kills, ${this.#stalls} stalls, ${this.#restarts} crashes of the database`,
    );
    await this.#settle();
    const result = await audit(this.#database, { allTerminal: true });
    return {
      ...result,
      acknowledged,
      kills: this.#kills,
      stalls: this.#stalls,
      restarts: this.#restarts,
    };
  }

  async end(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node?.end()));
  }

  #start(slot: number): void {
    const executors = fileURLToPath(new URL("./chaos-executors.ts", import.meta.url));
    this.#nodes[slot] = new NodeProcess(
      [
        "--database",
        this.#database,
        "--node-id",
        `w${slot}-${++this.#started}`,
        "--executors",
        executors,
        "--max-parallel",
        "8",
        "--log-level",
        "warn",
      ],
      fastEnvironment,
    );
  }

  /** Every second: one process is killed (and started anew) or stopped for longer than its lease. */
  #hurt(): void {
    const slot = this.#random.below(this.#nodes.length);
    const node = this.#nodes[slot];
    if (node === undefined) return;
    if (this.#random.chance(0.3)) {
      this.#stalls++;
      node.signal("SIGSTOP");
      setTimeout(() => node.signal("SIGCONT"), LEASE_MS * 1.5);
      return;
    }
    this.#kills++;
    void node.end("SIGKILL").then(() => this.#start(slot));
  }

  async #crashDatabase(): Promise<void> {
    this.#restarts++;
    this.#options.say(`the database crashes (${this.#restarts})`);
    await this.#options.server.crash();
    await sleep(500);
    await this.#options.server.run();
  }

  /** Submits with keys and repeats until acknowledged, as a careful client does. */
  async #submitAll(count: number, withinMs: number): Promise<number> {
    let acknowledged = 0;
    const pauseMs = withinMs / (count / SUBMIT_BATCH);
    for (let from = 0; from < count; from += SUBMIT_BATCH) {
      const size = Math.min(SUBMIT_BATCH, count - from);
      const batch = Array.from({ length: size }, (_, i) => ({
        executor: "work",
        input: { i: from + i },
        idempotency_key: `chaos-${from + i}`,
        max_attempts: 50,
      }));
      const started = Date.now();
      await this.#acknowledge(batch);
      acknowledged += size;
      await sleep(Math.max(0, pauseMs - (Date.now() - started)));
    }
    return acknowledged;
  }

  async #acknowledge(
    batch: readonly { executor: string; idempotency_key: string }[],
  ): Promise<void> {
    for (;;) {
      const node = this.#random.pick(this.#nodes);
      const url = await Promise.race([node?.ready.catch(() => undefined), sleep(300)]);
      if (url !== undefined && node?.alive) {
        const client = new QueueClient(url.url);
        try {
          const answers = await Promise.race([client.submitMany(batch), sleep(5_000)]);
          if (answers?.every((answer) => "id" in answer)) return;
        } catch {
          // The node died, or nobody leads: another one, later.
        } finally {
          client.close();
        }
      }
      await sleep(100);
    }
  }

  /** Faults are over: all nodes live. */
  #revive(): void {
    for (const [slot, node] of this.#nodes.entries()) {
      node?.signal("SIGCONT");
      if (node === undefined || !node.alive) this.#start(slot);
    }
  }

  async #settle(): Promise<void> {
    let left = Number.POSITIVE_INFINITY;
    await eventually(
      "the end of all tasks",
      async () => {
        const [row] = await this.#options.server.query(
          this.#database,
          "select count(*)::int as left from tasks where finished_at is null",
        );
        left = Number(row?.["left"]);
        await sleep(200);
        return left === 0;
      },
      240_000,
    ).catch((error) => {
      throw new Error(`${error.message}: ${left} tasks are left`);
    });
  }
}
