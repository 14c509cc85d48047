/** A leader in this process without a node around it: tests ask it directly. */

import { randomUUID } from "node:crypto";
import type { QueueSettings } from "../../../src/core/queue/settings.ts";
import { Background } from "../../../src/host/background.ts";
import { silentLog } from "../../../src/host/ports/log.ts";
import { Feed } from "../../../src/queue/leader/feed.ts";
import { Leader } from "../../../src/queue/leader/leader.ts";
import { QueueMetrics } from "../../../src/queue/leader/metrics.ts";
import type { Database } from "../../../src/queue/store/database.ts";
import { fastSettings } from "./fixtures.ts";

/** Undefined while another one leads. */
export async function lead(
  database: Database,
  nodeId: string,
  leaseMs: number,
  changes: Partial<QueueSettings> = {},
): Promise<Leader | undefined> {
  const run = randomUUID();
  const [row] = await database.query(
    "leader-acquire",
    [nodeId, run, "http://nowhere", leaseMs],
    "control",
  );
  if (row === undefined) return undefined;
  const leader = new Leader({
    database,
    epoch: Number(row["epoch"]),
    run,
    nodeId,
    settings: { ...fastSettings, taskLeaseMs: 60_000, heartbeatMs: 60_000, ...changes },
    feed: new Feed(),
    log: silentLog,
    background: new Background(() => undefined),
    metrics: new QueueMetrics(),
    onFenced: () => undefined,
    firstOfProcess: true,
  });
  await leader.begin();
  return leader;
}
