/** The queue itself: leases, fencing and events on, as for users. */

import { performance } from "node:perf_hooks";
import type {
  Executor,
  Executors,
  QueueNode as Node,
  QueueSettings,
  Role,
} from "../../src/queue/index.ts";
import { NodeProcess } from "../../test/processes/queue/fixtures.ts";
import {
  type Arena,
  batches,
  inFlight,
  Latch,
  meter,
  perSecond,
  type Speeds,
  timed,
  until,
} from "./peers.ts";
import { defaultSettings, QueueClient, QueueNode, silentLog } from "./product.ts";

export function startNode(
  url: string,
  executors: Executors,
  settings: Partial<QueueSettings>,
  nodeId = "bench",
  role: Role = "auto",
): Promise<Node> {
  return QueueNode.start({
    nodeId,
    role,
    listen: { host: "127.0.0.1", port: 0 },
    databaseUrl: url,
    dataDirectory: ".",
    executors,
    settings: { ...defaultSettings, ...settings },
    log: silentLog,
  });
}

type Given = Partial<Pick<QueueSettings, "maxParallel" | "prefetch">>;

/** One node that leads and works; with default settings unless given. */
export async function benchOurs(
  arena: Arena,
  settings: Given = {},
  executors?: Executors,
): Promise<Speeds> {
  const { url, count, serverPid } = arena;
  const submitMs = await submitAll(arena);
  const latch = new Latch(count);
  const noop = executors?.["noop"] ?? (() => undefined);
  const counted: Executor = async (input, context) => {
    await noop(input, context);
    latch.hit();
  };
  const stop = meter(serverPid);
  const node = await startNode(url, { noop: counted }, settings);
  await latch.reached;
  await until(async () => {
    const counts = await node.reader.counts();
    return counts.QUEUED + counts.RUNNING === 0;
  });
  const run = stop();
  await node.stop(0);
  return perSecond(count, submitMs, run);
}

/** The same worker beside a leader in another process that does not work. */
export async function benchRemote(arena: Arena): Promise<Speeds> {
  const { url, count } = arena;
  const submitMs = await submitAll(arena);
  const args = ["--database", url, "--node-id", "leader", "--role", "leader"];
  args.push("--max-parallel", "0", "--log-level", "error");
  const leader = new NodeProcess(args);
  await leader.ready;
  const latch = new Latch(count);
  const start = performance.now();
  const worker = await startNode(url, { noop: () => latch.hit() }, {}, "apart", "worker");
  await latch.reached;
  await until(async () => {
    const counts = await worker.reader.counts();
    return counts.QUEUED + counts.RUNNING === 0;
  });
  const ms = performance.now() - start;
  await worker.stop(0);
  await leader.end("SIGTERM");
  return perSecond(count, submitMs, { ms, cpuMs: 0 });
}

/** Time for the clients to submit all tasks. */
async function submitAll({ url, count }: Arena): Promise<number> {
  const coordinator = await startNode(url, {}, { maxParallel: 0 });
  const client = new QueueClient(coordinator.url);
  const ms = await timed(async () => {
    await inFlight(batches(count), (batch) =>
      client.submitMany(batch.map((i) => ({ executor: "noop", input: { i } }))),
    );
  });
  client.close();
  await coordinator.stop(0);
  return ms;
}

/** Inserts finished tasks with whole histories, as days of work would have left them. */
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
