/** Tasks in transactions of applications: as many as commits, whatever breaks. */

import pg from "pg";
import { describe, expect, it } from "vitest";
import { backoffProblem } from "../../../src/core/queue/retry.ts";
import {
  type Backoff,
  type ExecutionContext,
  silentLog,
  submitInTransaction,
} from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const done = () => "done";

describe("tasks in transactions", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  async function connect(database: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  it("starts with the commit, and does not exist without it", async () => {
    const database = await bench.database();
    const node = await bench.node({ database, executors: { done }, settings: calmSettings });
    const queue = bench.client(node);
    const app = await connect(database);
    await app.query("begin");
    const dropped = await submitInTransaction(app, { executor: "done" });
    await app.query("rollback");
    await app.query("begin");
    const id = await submitInTransaction(app, {
      executor: "done",
      input: { order: 1 },
      idempotency_key: "ship-1",
    });
    await expect(queue.get(id)).rejects.toThrow(/no task/);
    await app.query("commit");
    expect(await queue.wait(id)).toMatchObject({ state: "SUCCEEDED", input: { order: 1 } });
    await expect(queue.get(dropped)).rejects.toThrow(/no task/);

    const again = { executor: "done", input: { order: 1 }, idempotency_key: "ship-1" };
    expect(await submitInTransaction(app, again)).toBe(id);
    await expect(submitInTransaction(app, { ...again, input: 2 })).rejects.toThrow(/other content/);
    await expect(submitInTransaction(app, { executor: "" })).rejects.toThrow(/executor/);
    const never = "select hyperscale.submit('done', run_after => 'infinity')";
    await expect(app.query(never)).rejects.toThrow(/run_after_is_usable/);
    const late = "select hyperscale.submit('done', timeout => '290000 years')";
    await expect(app.query(late)).rejects.toThrow(/deadline_is_usable/);
    await expect(queue.submit({ executor: "done", run_after: 8.7e12 })).rejects.toThrow(
      /run_after/,
    );
    const placed = { executor: "done", placement_constraints: { allowed_nodes: ["none"] } };
    await expect(submitInTransaction(app, placed)).rejects.toThrow(/no field "placement_constr/);
    const later = await submitInTransaction(app, { executor: "done", run_after: "2100-01-01" });
    expect(await queue.get(later)).toMatchObject({ state: "QUEUED" });
    await app.end();
  });

  it("takes back-off, limits, queues and dependencies, with the rules of a client's submit", async () => {
    const database = await bench.database();
    const handed = (_: unknown, { dependencies }: ExecutionContext): unknown => dependencies;
    const executors = { done, handed };
    const node = await bench.node({ database, executors, settings: calmSettings });
    const queue = bench.client(node);
    const app = await connect(database);
    const backoff = { kind: "linear", base: 5, factor: 2, cap: 60, jitter: 0 } as const;
    const options = { queue: "mail", attempt_timeout: 1.5, timeout: 60, backoff };
    const earlier = await queue.submit({ executor: "done" });
    await app.query("begin");
    const first = await submitInTransaction(app, { executor: "done", ...options });
    const depends_on = [first, Number(earlier.id), first];
    const second = await submitInTransaction(app, { executor: "handed", depends_on });
    await app.query("commit");
    expect(await queue.wait(second)).toMatchObject({
      ...{ state: "SUCCEEDED", depends_on: { [first]: first, [earlier.id]: earlier.id } },
      result: { [first]: "done", [earlier.id]: "done" },
    });
    const stored = await queue.get(first);
    expect(stored).toMatchObject({ queue: "mail", attempt_timeout_ms: 1_500, backoff });
    expect(stored.deadline).not.toBeNull();
    const failing = { ms: 0, fail: "on purpose", retryable: false };
    const failed = await submitInTransaction(app, { executor: "sleep", input: failing });
    const never = await submitInTransaction(app, { executor: "done", depends_on: [failed] });
    expect(await queue.wait(never)).toMatchObject({ state: "CANCELLED" });
    const refused = (task: object, words: RegExp) =>
      expect(submitInTransaction(app, { executor: "done", ...task })).rejects.toThrow(words);
    await refused({ depends_on: [999_999] }, /do not exist: 999999/);
    // As in the rules for clients: the same text for the same mistake.
    const wrong: readonly Readonly<Record<string, unknown>>[] = [
      ...[{ kind: "slow" }, { base: -1 }, { cap: 3e6 }, { base: 5, cap: 4 }],
      ...[{ factor: 0.5 }, { kind: "linear", factor: -1 }, { jitter: 2 }],
    ];
    for (const one of wrong) {
      const problem = backoffProblem(one as Backoff) ?? "none";
      await refused({ backoff: one }, new RegExp(`backoff: ${problem.replace(/[.()]/g, ".")}`));
    }
    await refused({ backoff: { bsae: 1 } }, /no field bsae/);
    await refused({ backoff: { base: "1" } }, /base is a number/);
    await app.end();
  });

  it("logs once that a task was created, also without a leader", async () => {
    const database = await bench.database();
    const first = await bench.node({ database, settings: calmSettings });
    await first.stop(0);
    const app = await connect(database);
    const early = await submitInTransaction(app, { executor: "nobody" });
    const lines: unknown[] = [];
    const event = (_: string, name: string, fields: Readonly<Record<string, unknown>>): void => {
      if (name === "task.created") lines.push(fields["task_id"]);
    };
    const log = { ...silentLog, enabled: () => true, event };
    const node = await bench.node({ database, settings: calmSettings, log });
    await expect.poll(() => lines.length).toBe(1);
    const late = await submitInTransaction(app, { executor: "nobody" });
    await expect.poll(() => lines.length).toBe(2);
    await node.stop(0);
    await bench.node({ database, settings: calmSettings, log });
    const last = await submitInTransaction(app, { executor: "nobody" });
    await expect.poll(() => lines).toContain(String(last));
    expect(lines).toEqual([early, late, last].map(String));
    await app.end();
  });

  it("needs no right on any table, and is not led astray by tables of its caller", async () => {
    const database = await bench.database();
    const node = await bench.node({ database, executors: { done }, settings: calmSettings });
    await bench.query(database, "create role shop login");
    await bench.query(database, "grant usage on schema hyperscale to shop");
    const app = await connect(database.replace("postgres@", "shop@"));
    await app.query("create temp table tasks (id bigint)");
    const id = await submitInTransaction(app, { executor: "done" });
    expect((await bench.client(node).wait(id)).state).toBe("SUCCEEDED");
    await expect(app.query("select * from hyperscale.tasks")).rejects.toThrow(/permission denied/);
    await app.end();
    await bench.query(database, "drop owned by shop");
    await bench.query(database, "drop role shop");
  });
});
