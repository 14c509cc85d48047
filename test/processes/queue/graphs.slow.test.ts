/** Tasks that depend on each other: results handed on, graphs stored together, and what failures do to them. */

import { expect, it } from "vitest";
import type { ExecutionContext, QueueClient, Task } from "../../../src/queue/index.ts";
import { eventually } from "./fixtures.ts";
import { onBothStores } from "./stores.ts";

/** An executor that gives what it was handed. */
const handed = (_: unknown, { dependencies }: ExecutionContext): unknown => dependencies;
const give = (input: unknown): unknown => input;
const statesOf = async (client: QueueClient, ids: readonly string[]): Promise<readonly string[]> =>
  (await Promise.all(ids.map((id) => client.get(id)))).map((task: Task) => task.state);

onBothStores("graphs of tasks", (open) => {
  it("hands the results of dependencies to a dependent: by id, and in a graph by name", async () => {
    const client = await open({ give, handed });
    const before = await client.submit({ executor: "give", input: { made: "before" } });
    const single = await client.submit({ executor: "handed", depends_on: [before.id] });
    expect((await client.wait(single)).result).toEqual({ [before.id]: { made: "before" } });
    const { tasks, created } = await client.submitGraph({
      join: { executor: "handed", depends_on: ["left", "right", Number(before.id)] },
      left: { executor: "give", input: [1, 2] },
      right: { executor: "give", depends_on: ["left"] },
    });
    expect(created).toBe(true);
    const joined = await client.wait(tasks.join);
    const results = { left: [1, 2], right: null, [before.id]: { made: "before" } };
    expect(joined).toMatchObject({ state: "SUCCEEDED", result: results });
    const ids = { left: tasks.left.id, right: tasks.right.id, [before.id]: before.id };
    expect((await client.get(tasks.join.id)).depends_on).toEqual(ids);
  });

  it("stores nothing of a rejected graph", async () => {
    const client = await open({ give });
    const refused = async (tasks: unknown, words: RegExp): Promise<void> => {
      await expect(client.call("submit_graph", { tasks })).rejects.toThrow(words);
      expect(await client.list()).toEqual([]);
    };
    const a = { executor: "give" };
    await refused({ a: { ...a, depends_on: ["b"] }, b: { ...a, depends_on: ["a"] } }, /circle/);
    await refused({ a, b: { ...a, depends_on: ["c"] } }, /tasks\.b: .*"c"/);
    await refused({ a, b: { ...a, depends_on: [999_999] } }, /do not exist: 999999/);
    await refused({ a, b: { ...a, priority: "high" } }, /tasks\.b: priority/);
    await refused({ a, b: { ...a, unique_key: "one" } }, /tasks\.b: .*unique_key/);
    await refused({}, /at least one/);
    const many = Object.fromEntries(Array.from({ length: 5_001 }, (_, i) => [`t${i}`, a]));
    await refused(many, /at most 5000 tasks/);
  });

  it("accepts a graph once by its key, and rejects the key with another graph", async () => {
    const client = await open({ give });
    const key = { idempotency_key: "nightly" };
    const a = { executor: "give" } as const;
    const twice = await Promise.all(
      [1, 2].map(() => client.submitGraph({ a, b: { ...a, depends_on: ["a"] } }, key)),
    );
    expect(twice.map(({ created }) => created).sort()).toEqual([false, true]);
    expect(twice[0]?.tasks).toEqual(twice[1]?.tasks);
    await expect(client.submitGraph({ a }, key)).rejects.toThrow(/other content/);
    await expect(client.submitGraph({ c: a }, key)).rejects.toThrow(/other content/);
    expect(await client.list()).toHaveLength(2);
  });

  it("cancels what depends on a failure, and sends it back with the failed one", async () => {
    let broken = true;
    const maybe = (input: unknown): unknown => {
      if (broken) throw Object.assign(new Error("on purpose"), { retryable: false });
      return input;
    };
    const client = await open({ give, maybe, handed });
    const { tasks } = await client.submitGraph({
      good: { executor: "give", input: "good" },
      bad: { executor: "maybe", input: "mended" },
      after: { executor: "handed", depends_on: ["good", "bad"] },
      last: { executor: "handed", depends_on: ["after"] },
      other: { executor: "handed", depends_on: ["good"] },
    });
    const last = await client.wait(tasks.last);
    expect(last.error?.message).toMatch(`task ${tasks.after.id}, which this one depends on`);
    expect((await client.wait(tasks.other)).state).toBe("SUCCEEDED");
    const three = [tasks.bad.id, tasks.after.id, tasks.last.id];
    expect(await statesOf(client, three)).toEqual(["FAILED", "CANCELLED", "CANCELLED"]);
    broken = false;
    await client.requeue(tasks.bad.id);
    await eventually(
      "the last succeeded",
      async () => (await client.get(tasks.last.id)).state === "SUCCEEDED",
    );
    const results = { after: { good: "good", bad: "mended" } };
    expect((await client.get(tasks.last.id)).result).toEqual(results);
  });

  it("leaves a manually cancelled task alone when its dependency is requeued", async () => {
    const fail = (): never => {
      throw Object.assign(new Error("on purpose"), { retryable: false });
    };
    const client = await open({ give, fail });
    const { tasks } = await client.submitGraph({
      bad: { executor: "fail", run_after: 3_600 },
      after: { executor: "give", depends_on: ["bad"] },
    });
    await client.cancel(tasks.after.id);
    await client.cancel(tasks.bad.id);
    await client.requeue(tasks.bad.id);
    await client.wait(tasks.bad);
    expect((await client.get(tasks.after.id)).state).toBe("CANCELLED");
  });

  it("runs a dependent that is requeued alone without the result, and reports why it is missing", async () => {
    const fail = (): never => {
      throw Object.assign(new Error("on purpose"), { retryable: false });
    };
    const why = (_: unknown, context: ExecutionContext): unknown => context.dependenciesMissing;
    const client = await open({ fail, why, handed, reads: readsBad });
    const { tasks } = await client.submitGraph({
      bad: { executor: "fail" },
      why: { executor: "why", depends_on: ["bad"] },
      reads: { executor: "reads", depends_on: ["bad"] },
    });
    await Promise.all([client.wait(tasks.why), client.wait(tasks.reads)]);
    await client.requeue(tasks.why.id);
    await client.requeue(tasks.reads.id);
    const reason = `task ${tasks.bad.id} is FAILED`;
    expect((await client.wait(tasks.why)).result).toEqual({ bad: reason });
    const failed = await client.wait(tasks.reads);
    expect(failed).toMatchObject({ state: "FAILED", error: { name: "NotRetryable" } });
    expect(failed.error?.message).toContain(reason);
  });

  it("hands over 1 MiB of results together, short ones first, and names the others", async () => {
    const large = ({ length }: { length: number }): string => "x".repeat(length);
    const told = (
      _: unknown,
      { dependencies, dependenciesMissing }: ExecutionContext,
    ): unknown => ({
      handed: Object.keys(dependencies).sort(),
      missing: dependenciesMissing,
    });
    const client = await open({ large: large as never, told });
    const of = (length: number) => ({ executor: "large", input: { length } }) as const;
    const { tasks } = await client.submitGraph({
      a: of(600_000),
      b: of(400_000),
      c: of(300_000),
      all: { executor: "told", depends_on: ["a", "b", "c"] },
    });
    const { handed: names, missing } = (await client.wait(tasks.all)).result as {
      readonly handed: readonly string[];
      readonly missing: Readonly<Record<string, string>>;
    };
    expect(names).toEqual(["b", "c"]);
    expect(missing["a"]).toMatch(/a result of \d+ bytes, .* 1048576 bytes together at most$/);
  });

  it("keeps what a live task depends on, also when all is deleted", async () => {
    const client = await open({ give, handed });
    await client.limitQueue("later", { paused: true });
    const { tasks } = await client.submitGraph({
      first: { executor: "give", input: "kept" },
      second: { executor: "handed", depends_on: ["first"], queue: "later" },
    });
    await client.wait(tasks.first);
    expect(await client.deleteAll({})).toBe(0);
    await expect(client.delete(tasks.first.id)).rejects.toThrow(/not ended depends on it/);
    await expect(client.delete(tasks.second.id)).rejects.toThrow(/it is QUEUED/);
    await client.limitQueue("later", { paused: false });
    expect((await client.wait(tasks.second)).result).toEqual({ first: "kept" });
    await client.delete(tasks.second.id);
    await expect(client.delete(tasks.second.id)).rejects.toThrow(/no task/);
    expect(await client.deleteAll({})).toBe(1);
  });

  it("runs a graph of 1,000 tasks, each after its dependencies", async () => {
    const sum = (input: unknown, { dependencies }: ExecutionContext): number =>
      Object.values(dependencies).reduce((all: number, one) => all + Number(one), Number(input));
    const client = await open({ sum });
    // Ten rows of a hundred: each task adds three of the row before. Then one adds up the last row.
    const at = (row: number, column: number): string => `t${row}x${column % 100}`;
    const entries = Array.from({ length: 1_000 }, (_, i) => {
      const [row, column] = [Math.floor(i / 100), i % 100];
      const before = row === 0 ? [] : [0, 1, 2].map((step) => at(row - 1, column + step));
      return [at(row, column), { executor: "sum", input: row === 0 ? 1 : 0, depends_on: before }];
    });
    const last = Array.from({ length: 100 }, (_, column) => at(9, column));
    const join = { executor: "sum", input: 0, depends_on: last };
    const { tasks } = await client.submitGraph<Record<string, typeof join>>({
      ...Object.fromEntries(entries),
      join,
    });
    expect((await client.wait(tasks["join"]?.id ?? "")).result).toBe(100 * 3 ** 9);
    expect((await client.status()).counts).toMatchObject({ SUCCEEDED: 1_001, FAILED: 0 });
  });
});

function readsBad(_: unknown, { dependencies }: ExecutionContext): unknown {
  return dependencies["bad"];
}
