/** A cluster of processes on the loopback, a target that records arrivals, and jobs between them. */

import { fileURLToPath } from "node:url";
import { type ClusterClient, ClusterError, hasEnded } from "../../src/client/client.ts";
import type { JobView, NodeView, Progress } from "../../src/core/cluster/messages.ts";
import type { RunOptions } from "../../src/runner/run-options.ts";
import { Nodes } from "../../test/chaos/cluster/nodes.ts";
import { Sites } from "../../test/chaos/cluster/sites.ts";
import { ArrivalTarget } from "./arrivals.ts";

/** From the built package: executor cores, which cannot load TypeScript, load the parts of a job. */
const { prepareJob } = (await import(
  new URL("../../dist/runner/submission.js", import.meta.url).href
)) as typeof import("../../src/runner/submission.ts");

const FLOW = fileURLToPath(new URL("./flow.ts", import.meta.url));
/** A ceiling for a hang. */
const WAIT_MS_MAX = 180_000;
/** Ports of one cluster after the other, so that TIME_WAIT of an earlier one does not interfere. */
const PORTS_PER_CLUSTER = 400;
const FIRST_PORT = 20_000 + Math.floor(Math.random() * 20) * PORTS_PER_CLUSTER;
let clusters = 0;

/** Port of the first node of another cluster. */
export function freePort(): number {
  return FIRST_PORT + PORTS_PER_CLUSTER * clusters++;
}

interface Shape {
  readonly gates: number;
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
}

type PreparedJob = Awaited<ReturnType<typeof prepareJob>>;

export class Stage {
  readonly nodes: Nodes;
  readonly target: ArrivalTarget;
  readonly client: ClusterClient;

  private constructor(nodes: Nodes, target: ArrivalTarget) {
    this.nodes = nodes;
    this.target = target;
    this.client = nodes.client(nodes.names("gate").length > 0 ? "" : "dc1");
  }

  /** Profile `dc`, with all nodes known to each other. */
  static async start(shape: Shape): Promise<Stage> {
    const port = freePort();
    const all = { ...shape, port, profile: "dc" };
    const nodes = await Nodes.start(all, Sites.create(["dc1"]));
    const stage = new Stage(nodes, await ArrivalTarget.start());
    await stage.settled();
    return stage;
  }

  /** Waits until all nodes are alive. */
  async complete(): Promise<void> {
    await until(async () => ((await this.#alive()) === null ? null : true), "all nodes are alive");
  }

  async #alive(): Promise<readonly NodeView[] | null> {
    const known = await this.client.nodes();
    const isComplete = known.every(({ status }) => status === "alive");
    return isComplete && known.length >= this.nodes.names().length ? known : null;
  }

  /** Waits until all nodes are alive and idle. */
  async settled(): Promise<void> {
    await until(async () => {
      const known = await this.#alive();
      if (known === null || known.some(({ coresUsed }) => coresUsed > 0)) return null;
      const datacenters = await this.client.datacenters();
      return datacenters.every(({ cores, coresFree }) => coresFree === cores) ? true : null;
    }, "the cluster is idle");
  }

  prepare(options: RunOptions, target = this.target.url): Promise<PreparedJob> {
    const env = { HYPERSCALE_TARGET: target };
    return prepareJob(FLOW, { ...options, env }, () => undefined);
  }

  submit({ files, submission }: PreparedJob): Promise<string> {
    return this.client.submit(submission, files);
  }

  async ended(job: string): Promise<Progress> {
    return until(async () => {
      const progress = await this.client.progress(job, 0, false);
      return hasEnded(progress.status) ? progress : null;
    }, `${job} has ended`);
  }

  /** The manager that leads the job in its datacenter, and the workers that run it there. */
  async cast(job: string): Promise<{ readonly manager: string; readonly workers: string[] }> {
    return until(async () => {
      const view = await this.#viewBelow(await this.client.status(job));
      const attempts = (view?.workflows ?? []).flatMap((one) => one.attempts);
      const workers = attempts.filter(({ status }) => status === "running");
      const manager = view?.leader ?? null;
      if (manager === null || workers.length === 0) return null;
      return { manager, workers: workers.map(({ worker }) => worker) };
    }, `${job} is led and runs`);
  }

  async #viewBelow(view: JobView): Promise<JobView | null> {
    if (this.nodes.names("gate").length === 0) return view;
    const [part] = view.datacenters;
    if (part === undefined || part.job === "") return null;
    const client = this.nodes.client(part.name);
    try {
      return await client.status(part.job);
    } finally {
      await client.close();
    }
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.nodes.end();
    this.nodes.remove();
    this.target.close();
  }
}

/** Polls until there is a value; a failed request counts as none. */
export async function until<Value>(ask: () => Promise<Value | null>, what: string): Promise<Value> {
  const began = performance.now();
  for (;;) {
    const value = await ask().catch((error: unknown) => {
      if (error instanceof ClusterError) return null;
      throw error;
    });
    if (value !== null) return value;
    if (performance.now() - began > WAIT_MS_MAX) throw new Error(`waited in vain: ${what}`);
    await pause(100);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
