/** Cost of a killed process: of a worker for its task, and of a leader for everyone. */

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { NodeProcess } from "../../test/processes/queue/fixtures.ts";
import { startNode } from "./ours.ts";
import { QueueClient } from "./product.ts";

/** From SIGKILL of the worker to the task's start elsewhere, in milliseconds. */
export async function benchRecovery(url: string, leaseMs: number): Promise<number> {
  const lease = { HYPERSCALE_LEASE_DURATION_SECONDS: String(leaseMs / 1_000) };
  const doomed = new NodeProcess(
    ["--database", url, "--node-id", "doomed", "--role", "worker", "--log-level", "error"],
    lease,
  );
  const leader = await startNode(
    url,
    {},
    { maxParallel: 0, taskLeaseMs: leaseMs, leaseCleanupMs: leaseMs / 3 },
    "leader",
  );
  await doomed.ready;
  const client = new QueueClient(leader.url);
  const task = await client.submit({ executor: "sleep", input: { ms: 600_000 } });
  while ((await client.get(task.id)).state !== "RUNNING") await sleep(10);
  let rescued: (at: number) => void = () => undefined;
  const rescue = new Promise<number>((resolve) => {
    rescued = resolve;
  });
  const rescuer = await startNode(
    url,
    { sleep: () => rescued(performance.now()) },
    { taskLeaseMs: leaseMs, leaseCleanupMs: leaseMs / 3 },
    "rescuer",
  );
  await sleep(leaseMs / 2);
  const killedAt = performance.now();
  await doomed.end("SIGKILL");
  const recoveryMs = (await rescue) - killedAt;
  client.close();
  await rescuer.stop(1_000);
  await leader.stop(0);
  return recoveryMs;
}

const WORKERS = 2;
const LONG_TASKS = 24;
const LONG_TASK_MS = 20_000;
const SHORT_TASKS = 2_000;

interface LeaderKill {
  /** From the kill to the next leader that accepts a task. */
  readonly leaderMs: number;
  /** Attempts beyond the first of each task; no worker was affected. */
  readonly extraAttempts: number;
  readonly tasks: number;
}

/** Long and short tasks on healthy workers while their leader is killed; all settings are the defaults. */
export async function benchLeaderKill(
  url: string,
  query: (url: string, text: string) => Promise<readonly Record<string, unknown>[]>,
): Promise<LeaderKill> {
  const start = (id: string): NodeProcess =>
    new NodeProcess([
      ...["--database", url, "--node-id", id],
      ...["--max-parallel", "0", "--log-level", "error"],
    ]);
  const doomed = start("doomed");
  await doomed.ready;
  const successor = start("successor");
  const { url: successorUrl } = await successor.ready;
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, (_, i) =>
      startNode(
        url,
        { work: (input) => sleep((input as { ms: number }).ms) },
        {},
        `healthy-${i}`,
        "worker",
      ),
    ),
  );
  const client = new QueueClient(successorUrl);
  const submit = (count: number, ms: number): Promise<unknown> =>
    client.submitMany(Array.from({ length: count }, () => ({ executor: "work", input: { ms } })));
  await submit(LONG_TASKS, LONG_TASK_MS);
  while ((await client.status()).counts.RUNNING < LONG_TASKS) await sleep(50);
  await submit(SHORT_TASKS, 5);
  const killedAt = performance.now();
  await doomed.end("SIGKILL");
  for (;;) {
    const taken = await submit(1, 1).catch(() => undefined);
    if (taken !== undefined) break;
    await sleep(20);
  }
  const leaderMs = performance.now() - killedAt;
  const live = "select count(*)::int as count from tasks where finished_at is null";
  while ((await query(url, live))[0]?.["count"] !== 0) await sleep(200);
  const [row] = await query(
    url,
    "select count(*)::int as tasks, sum(attempt_id - 1 - attempts_forgiven)::int as extra from tasks",
  );
  client.close();
  await Promise.all(workers.map((worker) => worker.stop(0)));
  await successor.end("SIGTERM");
  return {
    leaderMs,
    extraAttempts: Number(row?.["extra"]),
    tasks: Number(row?.["tasks"]),
  };
}
