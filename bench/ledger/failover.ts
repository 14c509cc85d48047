/**
 * How long a job waits when its primary disappears: from the signal to the next commit through another node. A killed
 * one is replaced when its lease expires; a stopped one lets another lead first.
 */

import { setTimeout as pause } from "node:timers/promises";
import { LedgerStream } from "../../src/ledger/stream-client.ts";
import { acceptedEvent, createJobs } from "./commits.ts";
import { LedgerCluster } from "./processes.ts";

interface Failover {
  readonly leaseMs: number;
  readonly timesMs: readonly number[];
}

type Signal = "SIGKILL" | "SIGTERM";

export async function failover(leaseMs: number, rounds: number, by: Signal): Promise<Failover> {
  const cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs });
  const timesMs: number[] = [];
  try {
    await cluster.startAll();
    for (let round = 0; round < rounds; round++) timesMs.push(await endOnce(cluster, leaseMs, by));
    return { leaseMs, timesMs };
  } finally {
    await cluster.stop();
  }
}

async function endOnce(cluster: LedgerCluster, leaseMs: number, by: Signal): Promise<number> {
  const streams = await Promise.all(
    cluster.places.map(({ api }) => LedgerStream.connect(api, cluster.tokenAt(api))),
  );
  const [job] = await createJobs(streams, 1);
  if (job === undefined) throw new Error("no job");
  // Busy until the end: the lease was renewed just now, which is the worst case.
  const warm = acceptedEvent(job, "warm");
  await job.stream.ask({ kind: "append", event: warm, durability: "NONE" });
  const endedAt = performance.now();
  cluster.node(job.node).kill(by);
  const other = cluster.places.findIndex(({ name }) => name !== job.node);
  const survivor = streams[other] as LedgerStream;
  const event = acceptedEvent(job, "after");
  for (;;) {
    const answer = await survivor.ask({ kind: "append", event, durability: "NONE" });
    if (answer === null) throw new Error(`${job.node} was ended, and another closed its stream`);
    if (answer.kind === "committed") break;
    await pause(10);
  }
  const tookMs = performance.now() - endedAt;
  for (const stream of streams) stream.close();
  await cluster.node(job.node).ended;
  cluster.start(job.node);
  await cluster.ready(job.node);
  await pause(leaseMs);
  return Math.round(tookMs);
}
