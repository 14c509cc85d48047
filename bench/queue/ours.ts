/** The queue itself: leases, fencing and events on, as users get it. */

import { performance } from "node:perf_hooks";
import {
  defaultSettings,
  type Executors,
  QueueClient,
  QueueNode,
  type QueueSettings,
  silentLog,
} from "../../src/queue/index.ts";
import { batches, inFlight, Latch, perSecond, type Speeds, timed, until } from "./peers.ts";

export function startNode(
  url: string,
  executors: Executors,
  settings: Partial<QueueSettings>,
  nodeId = "bench",
): Promise<QueueNode> {
  return QueueNode.start({
    nodeId,
    role: "auto",
    listen: { host: "127.0.0.1", port: 0 },
    databaseUrl: url,
    dataDirectory: ".",
    executors,
    settings: { ...defaultSettings, ...settings },
    log: silentLog,
  });
}

export async function benchOurs(url: string, count: number, concurrency: number): Promise<Speeds> {
  const coordinator = await startNode(url, {}, { maxParallel: 0 });
  const client = new QueueClient(coordinator.url);
  const submitMs = await timed(async () => {
    await inFlight(batches(count), (batch) =>
      client.submitMany(batch.map((i) => ({ executor: "noop", input: { i } }))),
    );
  });
  client.close();
  await coordinator.stop(0);
  const latch = new Latch(count);
  const start = performance.now();
  const node = await startNode(
    url,
    { noop: () => latch.hit() },
    { maxParallel: concurrency, prefetch: 4_000 },
  );
  await latch.reached;
  await until(async () => {
    const counts = await node.reader.counts();
    return counts.QUEUED + counts.RUNNING === 0;
  });
  const runMs = performance.now() - start;
  await node.stop(0);
  return perSecond(count, submitMs, runMs);
}

/** Puts finished tasks with whole histories into the table, as days of work would have left them. */
export async function fillFinished(
  url: string,
  count: number,
  query: (url: string, text: string) => Promise<unknown>,
): Promise<void> {
  await (await startNode(url, {}, { maxParallel: 0 })).stop(0);
  const event = (type: string, from: string, to: string): string =>
    `row('${type}', ${from}, '${to}', 'bench', 1, 1, now(), null)::task_event`;
  await query(
    url,
    `insert into tasks (id, executor, lane, state, max_attempts, input, lease_id, last_assigned_node, started_at,
                        finished_at, history)
     select -i, 'noop', 'noop', 'SUCCEEDED', 3, jsonb_build_object('i', i), gen_random_uuid(), 'bench', now(), now(),
            array[${event("created", "null", "QUEUED")}, ${event("assigned", "'QUEUED'", "RUNNING")},
                  ${event("started", "'RUNNING'", "RUNNING")}, ${event("completed", "'RUNNING'", "SUCCEEDED")}]
       from generate_series(1, ${count}) i`,
  );
  await query(url, `update task_totals set count = ${count} where state = 'SUCCEEDED'`);
  await query(url, "vacuum analyze tasks");
}
