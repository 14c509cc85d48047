/** How long failed tasks wait, and tasks that ask to be run later. */

import { expect, it } from "vitest";
import { QUEUE_LIMITS } from "../../../src/core/queue/defaults.ts";
import { type Backoff, defineExecutor, Snooze, type Task } from "../../../src/queue/index.ts";
import { eventually } from "./fixtures.ts";
import { onBothStores } from "./stores.ts";

const fixed = (base: number): Backoff => ({ kind: "constant", base, jitter: 0 });
const anything = {
  "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
} as const;

onBothStores("waiting after failures", (open) => {
  const fails = (): never => {
    throw new Error("not yet");
  };

  it("uses the setting of the task, then of its executor, then of its queue", async () => {
    const patient = Object.assign(() => fails(), { backoff: fixed(20_000) });
    const defined = defineExecutor({ input: anything, backoff: fixed(30_000), run: fails });
    const client = await open({ fails, patient, defined });
    await client.limitQueue("mail", { backoff: fixed(40_000) });
    const waits = async (task: Parameters<typeof client.submit>[0]): Promise<number> => {
      const { id } = await client.submit({ max_attempts: 5, ...task });
      const waiting = await eventually("it waits", async () => {
        const now = await client.get(id);
        return now.attempt_id > 1 && now;
      });
      // Short waits are over before a busy machine polls: whichever attempt it waits for, the one before failed.
      const failed = (await client.events(id)).find(
        ({ attempt_id, event_type }) =>
          event_type === "failed" && attempt_id === waiting.attempt_id - 1,
      );
      const ms = Date.parse(waiting.run_after ?? "") - Date.parse(failed?.timestamp ?? "");
      // All of them were over before the poll: try another task.
      return Number.isNaN(ms) ? waits(task) : Math.round(ms / 1_000);
    };
    expect(await waits({ executor: "patient", backoff: fixed(10_000), queue: "mail" })).toBe(
      10_000,
    );
    expect(await waits({ executor: "patient", queue: "mail" })).toBe(20_000);
    expect(await waits({ executor: "defined", queue: "mail" })).toBe(30_000);
    expect(await waits({ executor: "fails", queue: "mail" })).toBe(40_000);
    expect(await waits({ executor: "fails" })).toBeLessThan(2);
    const mail = (await client.queues()).find(({ queue }) => queue === "mail");
    expect(mail?.backoff).toEqual(fixed(40_000));
    await client.limitQueue("mail", { backoff: null });
    expect(await waits({ executor: "fails", queue: "mail" })).toBeLessThan(2);
    const wrong = { executor: "fails", backoff: { base: 9, cap: 1 } };
    await expect(client.submit(wrong)).rejects.toThrow(/backoff: cap must not be below base/);
  });

  it("rejects a node whose executor has an impossible setting", async () => {
    const wrong = Object.assign(() => fails(), { backoff: { jitter: 3 } });
    await expect(open({ wrong })).rejects.toThrow(/executor wrong: backoff: jitter is 0 to 1/);
  });

  it("runs a task again when it asked to, without costing an attempt", async () => {
    let runs = 0;
    const poll = (): number => {
      runs++;
      if (runs === 1) throw new Snooze(0.05);
      if (runs < 5) throw new Snooze(new Date(Date.now() + 20));
      return runs;
    };
    const later = (): never => {
      throw new Snooze(new Date("2100-01-01"));
    };
    const client = await open({ poll, later });
    const task = await client.submit({ executor: "poll", max_attempts: 1 });
    expect(await client.wait(task.id)).toMatchObject({
      ...{ state: "SUCCEEDED", result: 5, error: null },
      ...{ attempt_id: 5, attempts_forgiven: 4, max_attempts: 1 },
    });
    expect((await client.attempts(task.id)).slice(0, 2)).toMatchObject([
      { outcome: "returned", error: { message: "it asked to be run later" } },
      { outcome: "returned" },
    ]);
    const { id } = await client.submit({ executor: "later" });
    const waiting = await eventually<Task>("it waits", async () => {
      const now = await client.get(id);
      return now.attempt_id === 2 && now;
    });
    expect(waiting).toMatchObject({ state: "QUEUED", run_after: "2100-01-01T00:00:00.000Z" });
  });

  it("fails a task that asks for more time without end", async () => {
    const client = await open({
      never: () => {
        throw new Snooze(0.001);
      },
    });
    const { id } = await client.submit({ executor: "never", max_attempts: 3 });
    const ended = await client.wait(id);
    expect(ended).toMatchObject({ state: "FAILED", attempt_id: QUEUE_LIMITS.snoozesMax + 1 });
    expect(ended.error?.message).toBe("it asked to be run later more than 100 times");
    const again = await client.requeue(id);
    // A worker may have taken it before it is read.
    expect(["QUEUED", "RUNNING"]).toContain(again.state);
  });
});
