/**
 * A node loses its disk and is asked to join under its old name, as an empty volume and a script would do: three real
 * processes, in repeated rounds. Keys are submitted, a node is killed, its data directory removed, it joins and runs
 * again; the others are killed and restarted at random. No key may become a second job, and no acknowledged job may be
 * lost. (VSR-30)
 */

import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { LedgerCluster } from "../../../bench/ledger/processes.ts";
import { Random } from "../../../src/core/base/random.ts";
import { callLedger } from "../../../src/ledger/client.ts";

const LEASE_MS = 1_000;
const KEYS = 12;
const NAMES = ["n1", "n2", "n3"];
const RETRY = { retriesMax: 60, delayMs: 50, jitter: 0.5, attemptTimeoutMs: 10_000 };

interface Acknowledged {
  readonly key: string;
  readonly jobId: string;
}

interface WipeRound {
  readonly keys: number;
  readonly problems: readonly string[];
}

export async function wipeRound(seed: number): Promise<WipeRound> {
  const random = new Random(`wipe/${seed}`);
  const cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs: LEASE_MS });
  try {
    await cluster.startAll();
    const acknowledged: Acknowledged[] = [];
    for (let at = 0; at < KEYS; at++) {
      const key = `wipe:${at}:${randomBytes(8).toString("hex")}`;
      acknowledged.push({ key, jobId: await submit(cluster, NAMES, key) });
    }
    const lost = random.pick(NAMES);
    const others = NAMES.filter((name) => name !== lost);
    await kill(cluster, lost);
    await rm(join(cluster.dir, lost), { recursive: true });
    await cluster.allow(lost, "join");
    cluster.start(lost);
    if (random.chance(0.7)) {
      const other = random.pick(others);
      await kill(cluster, other);
      cluster.start(other);
      await cluster.ready(other);
    }
    return { keys: KEYS, problems: await compare(cluster, others, acknowledged) };
  } finally {
    await cluster.stop();
  }
}

async function kill(cluster: LedgerCluster, name: string): Promise<void> {
  cluster.node(name).kill("SIGKILL");
  await cluster.node(name).ended;
}

async function compare(
  cluster: LedgerCluster,
  names: readonly string[],
  acknowledged: readonly Acknowledged[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const { key, jobId } of acknowledged) {
    const again = await submit(cluster, names, key);
    if (again !== jobId) problems.push(`${key} was ${jobId} and is ${again} now`);
    const read = await call(cluster, names, "GET", `/v1/jobs/${jobId}?level=strong`);
    if (read.status !== 200) problems.push(`${jobId} was acknowledged and is ${read.status} now`);
  }
  return problems;
}

async function submit(
  cluster: LedgerCluster,
  names: readonly string[],
  key: string,
): Promise<string> {
  const answer = await call(cluster, names, "POST", "/v1/jobs", { key, spec: "work" });
  if (answer.status !== 200) throw new Error(`${key} is refused: ${JSON.stringify(answer.body)}`);
  return String(answer.body["jobId"]);
}

function call(
  cluster: LedgerCluster,
  names: readonly string[],
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): ReturnType<typeof callLedger> {
  const api = names.map((name) => cluster.place(name).api).join(",");
  const id = randomBytes(8).toString("hex");
  const more = body === undefined ? {} : { body };
  return callLedger({ api, dir: cluster.dir }, { method, path, id, retry: RETRY, ...more });
}
