/** How long a job waits when its primary is killed: from the kill to the next commit through another node. */

import { setTimeout as pause } from "node:timers/promises";
import { LedgerStream } from "../../src/ledger/testing/stream-client.ts";
import { acceptedEvent, createJobs } from "./commits.ts";
import { LedgerCluster } from "./processes.ts";

interface Failover {
  readonly leaseMs: number;
  readonly timesMs: readonly number[];
}

export async function failover(leaseMs: number, rounds: number): Promise<Failover> {
  const cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs });
  const timesMs: number[] = [];
  try {
    await cluster.startAll();
    for (let round = 0; round < rounds; round++) timesMs.push(await killOnce(cluster, leaseMs));
    return { leaseMs, timesMs };
  } finally {
    await cluster.stop();
  }
}

async function killOnce(cluster: LedgerCluster, leaseMs: number): Promise<number> {
  const streams = await Promise.all(cluster.places.map(({ api }) => LedgerStream.connect(api)));
  const [job] = await createJobs(streams, 1);
  if (job === undefined) throw new Error("no job");
  // Busy until the end: the lease was renewed just now, which is the worst case.
  const warm = acceptedEvent(job, "warm");
  await job.stream.ask({ kind: "append", event: warm, durability: "NONE" });
  const killedAt = performance.now();
  cluster.node(job.node).kill("SIGKILL");
  const other = cluster.places.findIndex(({ name }) => name !== job.node);
  const survivor = streams[other] as LedgerStream;
  const event = acceptedEvent(job, "after");
  for (;;) {
    const answer = await survivor.ask({ kind: "append", event, durability: "NONE" });
    if (answer?.kind === "committed") break;
    await pause(10);
  }
  const tookMs = performance.now() - killedAt;
  for (const stream of streams) stream.close();
  cluster.start(job.node);
  await cluster.ready(job.node);
  await pause(leaseMs);
  return Math.round(tookMs);
}
