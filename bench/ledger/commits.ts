/**
 * Commits per second of three nodes: each job always has `window` events in flight, each event is
 * acknowledged when a quorum has it on disk. The events are cancellations' acknowledgements of a
 * datacenter: small, replicated, and legal for ever.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { EventId, JobEvent } from "../../src/core/ledger/events.ts";
import type { JobId } from "../../src/core/ledger/job-id.ts";
import { LedgerStream } from "../../src/ledger/stream-client.ts";
import { LedgerCluster } from "./processes.ts";

export interface CommitsOptions {
  readonly jobs: number;
  readonly seconds: number;
  /** Events in flight per job. */
  readonly window: number;
  readonly profile: boolean;
}

export interface CommitsResult {
  readonly commitsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerCommit: number;
  readonly clientCpuUsPerCommit: number;
  readonly failures: number;
  readonly concurrency: number;
}

const WARM_MS = 2_000;

export async function commits(options: CommitsOptions): Promise<CommitsResult> {
  const cluster = await LedgerCluster.prepare({
    nodes: 3,
    leaseMs: 10_000,
    nodeArgs: ({ name }) =>
      options.profile ? ["--cpu-prof", `--cpu-prof-name=${name}.cpuprofile`] : [],
  });
  try {
    await cluster.startAll();
    const streams = await Promise.all(cluster.places.map(({ api }) => LedgerStream.connect(api)));
    const jobs = await createJobs(streams, options.jobs);
    const load = new Load(jobs, options.window);
    load.start();
    await pause(WARM_MS);
    const before = cluster.places.map(({ name }) => cluster.node(name).cpuMs);
    const clientBefore = process.cpuUsage();
    load.measure();
    const startedAt = performance.now();
    await pause(options.seconds * 1_000);
    const seconds = (performance.now() - startedAt) / 1_000;
    const { done, failures, latencies } = load.stop();
    const cpuMs = cluster.places
      .map(({ name }, at) => cluster.node(name).cpuMs - (before[at] ?? 0))
      .reduce((a, b) => a + b, 0);
    const client = process.cpuUsage(clientBefore);
    await load.drained();
    for (const stream of streams) stream.close();
    if (options.profile) {
      for (const { name } of cluster.places) cluster.node(name).kill("SIGTERM");
      for (const { name } of cluster.places) await cluster.node(name).ended;
      process.stderr.write(`profiles are in ${cluster.dir}\n`);
    }
    latencies.sort((a, b) => a - b);
    const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
    return {
      commitsPerSecond: Math.round(done / seconds),
      p50Ms: Number(at(0.5).toFixed(2)),
      p99Ms: Number(at(0.99).toFixed(2)),
      cpuUsPerCommit: Number(((cpuMs * 1_000) / done).toFixed(1)),
      clientCpuUsPerCommit: Number(((client.user + client.system) / done).toFixed(1)),
      failures,
      concurrency: options.jobs * options.window,
    };
  } finally {
    await cluster.stop(options.profile);
  }
}

export interface Job {
  readonly id: JobId;
  /** To the node that leads the job. */
  readonly stream: LedgerStream;
  readonly node: NodeId;
}

/** Jobs whose first primary is the node behind their stream: a client that knows where to ask. */
export async function createJobs(streams: readonly LedgerStream[], count: number): Promise<Job[]> {
  const created = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const stream = streams[at % streams.length] as LedgerStream;
      const spec = new Uint8Array(64);
      const answer = await stream.ask({ kind: "submit", key: "", spec, assignedDcs: ["dc1"] });
      if (answer?.kind !== "committed") throw new Error(`no job: ${JSON.stringify(answer)}`);
      const id = answer.jobId as JobId;
      const read = { kind: "read", jobId: id, level: "STRONG", minSeq: -1, staleMs: 0 } as const;
      const job = await stream.ask(read);
      const primary = job?.kind === "job" ? job.primary : null;
      return { id, primary };
    }),
  );
  return created.map(({ id, primary }) => {
    const at = Math.max(0, ["n1", "n2", "n3"].indexOf(primary ?? "n1"));
    return { id, stream: streams[at] as LedgerStream, node: `n${at + 1}` as NodeId };
  });
}

class Load {
  readonly #jobs: readonly Job[];
  readonly #window: number;
  #measuring = false;
  #stopped = false;
  #done = 0;
  #failures = 0;
  #open = 0;
  #sent = 0;
  #latencies: number[] = [];

  constructor(jobs: readonly Job[], window: number) {
    this.#jobs = jobs;
    this.#window = window;
  }

  start(): void {
    for (const job of this.#jobs) for (let i = 0; i < this.#window; i++) this.#next(job);
  }

  measure(): void {
    this.#done = 0;
    this.#failures = 0;
    this.#latencies = [];
    this.#measuring = true;
  }

  stop(): { done: number; failures: number; latencies: number[] } {
    this.#stopped = true;
    this.#measuring = false;
    return { done: this.#done, failures: this.#failures, latencies: this.#latencies };
  }

  async drained(): Promise<void> {
    for (let i = 0; i < 500 && this.#open > 0; i++) await pause(10);
  }

  #next(job: Job): void {
    const sentAt = performance.now();
    this.#open++;
    const event = acceptedEvent(job, `e${this.#sent++}`);
    job.stream.send({ kind: "append", event, durability: "REGIONAL" }, (answer) => {
      this.#open--;
      if (this.#measuring) {
        if (answer?.kind === "committed") this.#done++;
        else this.#failures++;
        // Every tenth is plenty for percentiles, and leaves the client lean.
        if (this.#done % 10 === 0) this.#latencies.push(performance.now() - sentAt);
      }
      if (!this.#stopped && answer !== null) this.#next(job);
    });
  }
}

export function acceptedEvent(job: Job, eventId: string): JobEvent {
  return {
    kind: "JobAccepted",
    jobId: job.id,
    eventId: eventId as EventId,
    fenceToken: 0,
    hlc: { wallMs: Date.now(), logical: 0, node: job.node },
    dcId: "dc1",
    workerCount: 1,
  };
}
