/**
 * Commits per second of three nodes: each job always has `window` events in flight, and each is acknowledged when a
 * quorum has it on disk. A client knows which node leads a job, as it would with any store that has one leader.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { NodeId } from "../../src/core/base/ids.ts";
import type { EventId, JobEvent } from "../../src/core/ledger/job/events.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";
import { LedgerStream } from "../../src/ledger/stream-client.ts";
import { Meter, type Metered } from "./meter.ts";
import { LedgerCluster } from "./processes.ts";

const CREATE_MS_MAX = 60_000;
const CREATE_PAUSE_MS = 100;

interface CommitsOptions {
  readonly jobs: number;
  readonly seconds: number;
  readonly warmMs: number;
  /** Events in flight per job. */
  readonly window: number;
  /** Writes a CPU profile of each node. */
  readonly profile: boolean;
}

export async function commits(options: CommitsOptions): Promise<Metered> {
  const cluster = await LedgerCluster.prepare({
    nodes: 3,
    leaseMs: 10_000,
    nodeArgs: ({ name }) => (options.profile ? ["--cpu-prof", `--cpu-prof-dir=${name}.prof`] : []),
  });
  try {
    await cluster.startAll();
    const streams = await Promise.all(
      cluster.places.map(({ api }) => LedgerStream.connect(api, cluster.tokenAt(api))),
    );
    const jobs = await createJobs(streams, options.jobs);
    const meter = new Meter(() =>
      cluster.places.map(({ name }) => cluster.node(name).cpuMs).reduce((a, b) => a + b, 0),
    );
    const load = new Load(meter);
    for (const job of jobs) for (let i = 0; i < options.window; i++) load.next(job);
    await pause(options.warmMs);
    meter.start();
    await pause(options.seconds * 1_000);
    const measured = meter.stop();
    load.stop();
    for (const stream of streams) stream.close();
    if (options.profile) {
      for (const { name } of cluster.places) cluster.node(name).kill("SIGTERM");
      for (const { name } of cluster.places) await cluster.node(name).ended;
      process.stderr.write(`profiles are in ${cluster.dir}\n`);
    }
    return measured;
  } finally {
    await cluster.stop(options.profile);
  }
}

interface Job {
  readonly id: JobId;
  /** Stream to the node that leads the job. */
  readonly stream: LedgerStream;
  readonly node: NodeId;
}

export async function createJobs(streams: readonly LedgerStream[], count: number): Promise<Job[]> {
  const created = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const stream = streams[at % streams.length] as LedgerStream;
      const id = await createJob(stream);
      const read = { kind: "read", jobId: id, level: "STRONG", minSeq: -1, staleMs: 0 } as const;
      const job = await stream.ask(read);
      return { id, primary: job?.kind === "job" ? job.primary : null };
    }),
  );
  return created.map(({ id, primary }) => {
    const at = Math.max(0, Number((primary ?? "n1").slice(1)) - 1);
    return { id, stream: streams[at] as LedgerStream, node: `n${at + 1}` as NodeId };
  });
}

/** Serving nodes may not have reached each other yet: until then, a submission finds no quorum. */
async function createJob(stream: LedgerStream): Promise<JobId> {
  const spec = new Uint8Array(64);
  for (const since = performance.now(); ; await pause(CREATE_PAUSE_MS)) {
    const answer = await stream.ask({ kind: "submit", key: "", spec, assignedDcs: ["dc1"] });
    if (answer?.kind === "committed") return answer.jobId as JobId;
    const isOpen = answer?.kind === "retry" || answer?.kind === "unknown";
    if (isOpen && performance.now() - since < CREATE_MS_MAX) continue;
    throw new Error(
      `no job: ${answer === null ? "the node has closed its stream" : JSON.stringify(answer)}`,
    );
  }
}

class Load {
  readonly #meter: Meter;
  #stopped = false;
  #sent = 0;

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  stop(): void {
    this.#stopped = true;
  }

  next(job: Job): void {
    const sentAt = performance.now();
    const event = acceptedEvent(job, `e${this.#sent++}`);
    job.stream.send({ kind: "append", event, durability: "REGIONAL" }, (answer) => {
      this.#meter.note(answer?.kind === "committed", sentAt);
      if (!this.#stopped && answer !== null) this.next(job);
    });
  }
}

/** Small, replicated, and legal any number of times. */
export function acceptedEvent(job: Pick<Job, "id" | "node">, eventId: string): JobEvent {
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
