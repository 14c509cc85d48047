/**
 * Chaos: tasks with inputs and results of up to 1 MiB over remote workers, while workers and leaders are killed, stall
 * and silently lose their connections, and while PostgreSQL crashes under all of them. Then the committed history is
 * audited: every task finished once, everything that can succeed did, and every lost attempt is attributed to a fault.
 *
 *     npm run chaos:queue [-- --seconds 1200 --tasks 20000 --workers 4 --leaders 2 --restarts 6]
 *
 * The tests run a shorter form of the same function.
 */

import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Random } from "../../../src/core/base/random.ts";
import { QueueClient, type SubmitRequest } from "../../../src/queue/index.ts";
import { type AuditResult, audit } from "./audit.ts";
import { type ExplainedAttempt, explainAttempts } from "./chaos-attempts.ts";
import { type ChaosLeases, type Fault, type FaultKind, hurtSlot, Slot } from "./chaos-faults.ts";
import type { TestPostgres } from "./server.ts";

interface ChaosOptions {
  readonly server: TestPostgres;
  readonly seconds: number;
  readonly tasks: number;
  readonly workers: number;
  readonly leaders: number;
  /** Crashes of the database. */
  readonly restarts: number;
  /** Between one fault and the next. */
  readonly everyMs: number;
  readonly seed: number;
  readonly leases: ChaosLeases;
  readonly logsDirectory?: string | undefined;
  readonly say: (text: string) => void;
}

interface ChaosResult extends AuditResult {
  readonly acknowledged: number;
  readonly faults: readonly Fault[];
  /** Every attempt that ended without its task, and why. */
  readonly lost: readonly ExplainedAttempt[];
}

const WORKER_SLOTS = 8;
const BATCH_TASKS_MAX = 200;
/** Below what one request may have. */
const BATCH_BYTES_MAX = 5_000_000;
/** One in this many has up to 1 MiB. */
const LARGE_EVERY = 31;
const TEXT_CHARACTERS_MAX = 1_048_000;
/** Two leases of a long task, and whatever a busy machine needs. */
const SETTLE_MS = 180_000;

export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const run = new ChaosRun(options, await options.server.createQueue());
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
  readonly #slots: Slot[] = [];
  readonly #faults: Fault[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(options: ChaosOptions, database: string) {
    this.#options = options;
    this.#database = database;
    this.#random = new Random(options.seed);
  }

  async play(): Promise<ChaosResult> {
    const { seconds, restarts, tasks, everyMs, server, leases } = this.#options;
    await this.#open();
    const began = Date.now();
    const submitting = this.#submitAll(tasks, seconds * 900);
    const crashAt = Array.from(
      { length: restarts },
      (_, i) => began + ((i + 1) * seconds * 1_000) / (restarts + 1),
    );
    while (Date.now() < began + seconds * 1_000) {
      await sleep(everyMs);
      if (crashAt[0] !== undefined && Date.now() >= crashAt[0]) {
        crashAt.shift();
        await this.#during("database crash", null, false, () => this.#crashDatabase());
      }
      await this.#hurt();
    }
    await Promise.all(this.#running);
    const acknowledged = await submitting;
    this.#options.say(`faults end: ${this.#faults.length}`);
    await this.#settle();
    const result = await audit(this.#database, { allTerminal: true });
    const crashes = this.#slots.flatMap((slot) => slot.crashes);
    const problems = [...result.problems, ...(await this.#damaged()), ...crashes];
    const lost = await explainAttempts(server, this.#database, this.#faults, leases);
    return { ...result, problems, acknowledged, faults: this.#faults, lost };
  }

  async end(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.end()));
  }

  async #open(): Promise<void> {
    const { server, workers, leaders, leases, logsDirectory } = this.#options;
    const { pathname } = new URL(this.#database);
    const executors = fileURLToPath(new URL("./chaos-executors.ts", import.meta.url));
    for (let i = 0; i < leaders + workers; i++) {
      const leads = i < leaders;
      this.#slots.push(
        await Slot.open({
          ...{ name: `${leads ? "leader" : "worker"}${i}`, executors },
          databasePort: server.port,
          databaseAt: (port) => `postgres://postgres@127.0.0.1:${port}${pathname}`,
          parallel: leads ? null : WORKER_SLOTS,
          ...{ leases, logsDirectory },
        }),
      );
    }
    for (const slot of this.#slots) slot.start();
    await Promise.all(this.#slots.map(({ node }) => node?.ready));
  }

  /** One slot that is well: the leader's as often as all of the others together would have it half as often. */
  async #hurt(): Promise<void> {
    const leader = await this.#leader();
    const well = this.#slots.filter(({ isHurt }) => !isHurt);
    const leading = well.find(({ nodeId }) => nodeId === leader);
    const slot =
      leading !== undefined && this.#random.chance(0.33)
        ? leading
        : well[this.#random.below(Math.max(1, well.length))];
    // Some node must be left to do the work, and to lead it.
    if (slot === undefined || well.length <= this.#slots.length / 2) return;
    if (slot.isReached && well.filter(({ isReached }) => isReached).length < 2) return;
    const led = slot.nodeId === leader;
    const [kind, work] = hurtSlot(slot, led, this.#random);
    const hurting = this.#during(kind, slot.nodeId, led, () => slot.hurt(work));
    this.#running.add(hurting);
    void hurting.finally(() => this.#running.delete(hurting));
  }

  async #during(
    kind: FaultKind,
    nodeId: string | null,
    led: boolean,
    work: () => Promise<void>,
  ): Promise<void> {
    const fault: Fault = { kind, nodeId, led, from: Date.now(), to: Number.POSITIVE_INFINITY };
    this.#faults.push(fault);
    await work();
    fault.to = Date.now();
  }

  async #leader(): Promise<string | null> {
    try {
      const found = await this.#options.server.query(
        this.#database,
        "select leader_id from cluster_leader where expires_at > clock_timestamp()",
      );
      return (found[0]?.["leader_id"] as string | undefined) ?? null;
    } catch {
      return null;
    }
  }

  async #crashDatabase(): Promise<void> {
    this.#options.say("the database crashes");
    await this.#options.server.crash();
    await sleep(500);
    await this.#options.server.run();
  }

  /** Submits with keys and repeats until acknowledged, as a careful client does. */
  async #submitAll(count: number, withinMs: number): Promise<number> {
    const began = Date.now();
    for (let from = 0; from < count; ) {
      const batch: SubmitRequest[] = [];
      let bytes = 0;
      while (from < count && batch.length < BATCH_TASKS_MAX && bytes < BATCH_BYTES_MAX) {
        const task = this.#task(from++);
        bytes += (task.input as { readonly text: string }).text.length;
        batch.push(task);
      }
      await this.#acknowledge(batch);
      await sleep(Math.max(0, began + (withinMs * from) / count - Date.now()));
    }
    return count;
  }

  #task(i: number): SubmitRequest {
    const characters = i % LARGE_EVERY === 0 ? this.#random.below(TEXT_CHARACTERS_MAX) : i % 200;
    const text = randomBytes(Math.ceil(characters / 2))
      .toString("hex")
      .slice(0, characters);
    const sha256 = createHash("sha256").update(text).digest("hex");
    const ms =
      i % 499 === 0 ? this.#options.leases.taskLeaseMs * 1.5 : i % 97 === 0 ? 2_500 : i % 7;
    const fate = i % 211 === 5 ? "fails" : i % 53 === 0 ? "fails once" : "succeeds";
    const input = { ms, fate, text, sha256 };
    return { executor: "work", input, idempotency_key: `chaos-${i}`, max_attempts: 50 };
  }

  async #acknowledge(batch: readonly SubmitRequest[]): Promise<void> {
    for (;;) {
      const { node } = this.#random.pick(this.#slots);
      const ready = await Promise.race([node?.ready.catch(() => undefined), sleep(300)]);
      if (ready !== undefined && node?.alive) {
        const client = new QueueClient(ready.url);
        try {
          const answers = await Promise.race([client.submitMany(batch), sleep(10_000)]);
          if (answers?.every((answer) => "id" in answer)) return;
        } catch {
          // The node died, or there is no leader: try another one, later.
        } finally {
          client.close();
        }
      }
      await sleep(100);
    }
  }

  /** Tasks that did not end as they should, or whose result is not what was sent. */
  async #damaged(): Promise<readonly string[]> {
    const rows = await this.#options.server.query(
      this.#database,
      `select id::text, state, input ->> 'fate' as fate, left(error ->> 'message', 200) as error from tasks
        where (state = 'FAILED') <> (input ->> 'fate' = 'fails') or state not in ('SUCCEEDED', 'FAILED')
           or (state = 'SUCCEEDED' and result ->> 'text' is distinct from input ->> 'text')
        order by id limit 10`,
    );
    return rows.map(
      ({ id, state, fate, error }) => `task ${id}, which ${fate}, is ${state}: ${error}`,
    );
  }

  /** Until all tasks have ended; a machine that is busy with other things may take its time, while tasks end. */
  async #settle(): Promise<void> {
    let least = Number.POSITIVE_INFINITY;
    let movedAt = Date.now();
    for (;;) {
      const [row] = await this.#options.server.query(
        this.#database,
        "select count(*)::int as left from tasks where finished_at is null",
      );
      const left = Number(row?.["left"]);
      if (left === 0) return;
      if (left < least) movedAt = Date.now();
      least = Math.min(least, left);
      if (Date.now() - movedAt > SETTLE_MS)
        throw new Error(`no task has ended for ${SETTLE_MS} ms: ${left} are left`);
      await sleep(500);
    }
  }
}
