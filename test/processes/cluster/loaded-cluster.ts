/** A real cluster under load for the smoke tests: a submitted file runs until everything was seen. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import type { RunSummary } from "../../../src/core/load/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, start, until } from "./local-cluster.ts";

/** Longer than any failover on a busy machine; each job is cancelled when everything was seen. */
const LOAD = "20m";
/** Enough for metrics of a core's load to have been reported. */
export const REQUESTS = 500;
/** Failures are noticed sooner than by default. */
const QUICK = { HYPERSCALE_LEASE: "1500ms", HYPERSCALE_WORKER_TIMEOUT: "1500ms" };

export class LoadedCluster {
  readonly cluster: LocalCluster;
  readonly client: ClusterClient;
  readonly #target: DemoTarget;

  private constructor(cluster: LocalCluster, client: ClusterClient, target: DemoTarget) {
    this.cluster = cluster;
    this.client = client;
    this.#target = target;
  }

  static async start(managers: number, workers: number): Promise<LoadedCluster> {
    const size = ["--managers", String(managers), "--workers", String(workers)];
    const [target, cluster] = await Promise.all([
      startDemoTarget({ port: 0 }),
      LocalCluster.startWith(QUICK, "--gates", "0", ...size),
    ]);
    return new LoadedCluster(cluster, await cluster.client(), target);
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.cluster.stop();
    await this.#target.close();
  }

  /** Counted by the target itself. */
  get requests(): number {
    return this.#target.stats().requests;
  }

  /** Returns once the target was asked for some of the job; `end` cancels it and reads its results. */
  async submit(...place: readonly string[]) {
    const out = join(this.cluster.dir, "results");
    const submitted = ended(
      start([
        ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--cores", "1"],
        ...["--vus", "8", "--duration", LOAD, "--graceful-stop", "60s", "--ui", "none"],
        ...["--out", out, "-e", `HYPERSCALE_TARGET=${this.#target.url}`, ...place],
      ]),
    );
    const { id, leader } = await until(async () => {
      if (this.requests < REQUESTS) return null;
      const job = (await this.client.jobs()).find(({ status }) => status === "RUNNING");
      return job === undefined || job.leader === null ? null : job;
    });
    const end = async (): Promise<RunSummary> => {
      await this.client.control(id, { kind: "cancel", reason: "all was seen" }, "test");
      const { code, stderr } = await submitted;
      expect(code, stderr).toBe(130);
      return JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
    };
    return { id, leader: leader ?? "", end };
  }

  async loadGoesOn(): Promise<void> {
    const before = this.requests;
    await until(async () => (this.requests > before + REQUESTS ? true : null));
  }
}
