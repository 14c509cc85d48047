/** Refusals that name their reason: a second process with one id, text that cannot be stored. */

import { describe, expect, it } from "vitest";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("a node of the queue", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  it("is not ready beside a live process with its id, reports why, and is when that has stopped", async () => {
    const database = await bench.database();
    const settings = { ...calmSettings, heartbeatMs: 200 };
    const leader = await bench.node({ database, nodeId: "leader", settings });
    await eventually("it leads", async () => leader.leader());
    const first = await bench.node({ database, nodeId: "twin", role: "worker", settings });
    await eventually("the first is ready", async () => (await first.ready()).ready);
    await eventually("it is known", async () =>
      (await leader.reader.nodes()).some((node) => node.node_id === "twin"),
    );
    const second = await bench.node({ database, nodeId: "twin", role: "worker", settings });
    await eventually("the second is not ready", async () => !(await second.ready()).ready);
    const answer = await fetch(`${second.url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([
      503,
      {
        ready: false,
        role: "worker",
        why: expect.stringMatching(/another live process has the node id "twin"/),
      },
    ]);
    await first.stop(0);
    await eventually("the second is ready", async () => (await second.ready()).ready);
  });

  it("rejects text that cannot be stored, by the name of its field", async () => {
    const node = await bench.node({ database: await bench.database(), settings: calmSettings });
    const client = bench.client(node);
    const { id } = await client.submit({ executor: "nobody" });
    const calls: readonly (readonly [string, object, string])[] = [
      ...["search", "executor", "node", "schedule"].map(
        (field) => ["list_tasks", { [field]: "a\0" }, field] as const,
      ),
      ["cancel_tasks", { executor: "a\0" }, "executor"],
      ["cancel_task", { task_id: id, reason: "a\0" }, "reason"],
      [
        "put_schedule",
        { schedule_id: "a\0", cron: "0 3 * * *", task: { executor: "x" } },
        "schedule_id",
      ],
      ["pause_schedule", { schedule_id: "a\0" }, "schedule_id"],
      [
        "submit_task",
        { executor: "x", placement_constraints: { requires_capabilities: { gpu: "a\0" } } },
        "gpu",
      ],
    ];
    for (const [method, params, field] of calls) {
      const error = await client.call(method, params).catch((caught: unknown) => caught);
      expect(error, `${method} ${field}`).toMatchObject({ code: "INVALID_PARAMS" });
      expect(String(error)).toMatch(new RegExp(`${field}.*cannot be stored`));
    }
    const lease = {
      task_id: id,
      lease_token: crypto.randomUUID(),
      name: "a.txt",
      hash: "0".repeat(64),
    };
    await expect(
      client.call("attach_file", { ...lease, media_type: "text/plain\r\nx: y" }),
    ).rejects.toThrow(/media_type: as type\/subtype/);
  });
});
