/**
 * One real cluster of three managers and two workers: a submitted file is run, the manager that leads the job is
 * killed, then the worker that runs it. The target's own count decides.
 */

import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import { shortIdOf } from "../../../src/client/job-names.ts";
import type { RunSummary } from "../../../src/core/run/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

/** Longer than any failover on a busy machine; each job is cancelled when everything was seen. */
const LOAD = "20m";
/** Enough for figures to have been reported of what a core makes. */
const REQUESTS = 500;

describe("a cluster of three managers and two workers", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  let client: ClusterClient;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.startWith(
      { HYPERSCALE_LEASE: "1500ms", HYPERSCALE_WORKER_TIMEOUT: "1500ms" },
      ...["--gates", "0", "--managers", "3", "--workers", "2"],
    );
    client = await cluster.client();
  }, MS_MAX);

  afterAll(async () => {
    await client?.close();
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  const submit = (out: string, ...place: readonly string[]): ChildProcess =>
    start([
      ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--cores", "1"],
      ...["--vus", "8", "--duration", LOAD, "--graceful-stop", "60s", "--ui", "none"],
      ...["--out", out, "-e", `HYPERSCALE_TARGET=${target.url}`, ...place],
    ]);

  /** The job that runs, once the target was asked for so much of it. */
  const running = (before: number) =>
    until(async () => {
      if (target.stats().requests < before + REQUESTS) return null;
      const job = (await client.jobs()).find(({ status }) => status === "RUNNING");
      return job === undefined || job.leader === null ? null : job;
    });

  async function loadGoesOn(): Promise<void> {
    const before = target.stats().requests;
    await until(async () => (target.stats().requests > before + REQUESTS ? true : null));
  }

  async function cancelled(job: string, child: Promise<{ code: number | null; stderr: string }>) {
    await client.control(job, { kind: "cancel", reason: "all was seen" }, "test");
    const { code, stderr } = await child;
    expect(code, stderr).toBe(130);
  }

  const summaryIn = async (out: string): Promise<RunSummary> =>
    JSON.parse(await readFile(join(out, "summary.json"), "utf8"));

  it(
    "counts what the target counts when the manager that leads the job is killed",
    async () => {
      const out = join(cluster.dir, "leader-killed");
      // It knows one manager, which may be the one that is killed.
      const submitted = ended(submit(out, ...cluster.placeOf("m1")));
      const { id, leader } = await running(0);
      expect(await client.jobId(shortIdOf(id).slice(0, 6))).toBe(id);
      expect(await client.jobId("last")).toBe(id);
      await cluster.end(leader ?? "", "SIGKILL");
      await until(async () => {
        const now = await client.status(id);
        return now.leader !== null && now.leader !== leader ? true : null;
      });
      await loadGoesOn();
      await cancelled(id, submitted);
      const { lost, totals, workflows } = await summaryIn(out);
      expect(workflows.map(({ status }) => status)).toEqual(["interrupted"]);
      expect(totals?.requests).toBeGreaterThan(REQUESTS);
      // A machine so busy that a worker was taken for lost has said so.
      if (lost.length === 0) expect(totals?.requests).toBe(target.stats().requests);
      else expect(totals?.requests).toBeLessThanOrEqual(target.stats().requests);

      // Both that are left give the same result, and each finds out by itself who is lost.
      for (const name of ["m1", "m2", "m3"].filter((one) => one !== leader)) {
        const one = await cluster.client(name);
        expect((await one.progress(id, 0, false)).summary?.totals).toEqual(totals);
        await until(async () => {
          const found = (await one.nodes()).find((node) => node.name === leader);
          return found?.status === "lost" ? true : null;
        });
        await one.close();
      }
    },
    MS_MAX,
  );

  it(
    "moves the share of a killed worker to the other, and states what was not counted",
    async () => {
      const out = join(cluster.dir, "worker-killed");
      const before = target.stats().requests;
      const submitted = ended(submit(out, "--dir", cluster.dir));
      const { id } = await running(before);
      const workerOf = async () => (await client.status(id)).workflows[0]?.attempts.at(-1)?.worker;
      const worker = await until(async () => (await workerOf()) ?? null);
      await cluster.end(worker, "SIGKILL");
      const other = worker === "w1" ? "w2" : "w1";
      await until(async () => ((await workerOf()) === other ? true : null));
      await loadGoesOn();
      await cancelled(id, submitted);
      const { lost, totals } = await summaryIn(out);
      const loss = lost.find((one) => one.worker === worker);
      expect(loss).toMatchObject({ exact: false, dealtAgainTo: other });
      expect(loss?.missingMs).toBeGreaterThan(0);
      // Null: not known, of a core that was lost before its figures were reported.
      const uncounted = lost.reduce(
        (sum, one) => sum + (one.requestsNotCounted ?? Number.POSITIVE_INFINITY),
        0,
      );
      const all = target.stats().requests - before;
      expect(totals?.requests).toBeLessThanOrEqual(all);
      expect(all).toBeLessThanOrEqual((totals?.requests ?? 0) + uncounted);
    },
    MS_MAX,
  );
});
