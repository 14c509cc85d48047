/** Load tests of the queue on a cluster of processes: metrics, verdicts, cancels, and nodes lost meanwhile. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { INTERRUPTED_REASON } from "../../../src/host/interruption.ts";
import { loadtestExecutor } from "../../../src/queue/executors/loadtest.ts";
import {
  defaultSettings,
  type FollowMessage,
  type QueueClient,
  submitLoadtest,
} from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { LocalCluster, MS_MAX } from "../cluster/local-cluster.ts";
import { calmSettings, eventually, NodeProcess, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const FLOW = `
import { flow, http } from "hyperscalejs";
const shop = http.target(process.env["SHOP"] ?? "");
export default flow("shop", { vus: 2, duration: "3s", gracefulStop: "60s" }, async ({ step }) => {
  await step("home", shop.get("/json"));
});
`;

/** The same with its path from a file beside it. */
const FED_FLOW = FLOW.replace("flow, http", "feed, flow, http")
  .replace("{ vus", '{ data: { row: feed.csv("paths.csv") }, vus')
  .replace("{ step }", "{ data, step }")
  .replace('"/json"', "data.row.path");

interface Summary {
  readonly name: string;
  readonly totals: { readonly requests: number };
}

describe("load tests on a cluster", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();
  let cluster: LocalCluster;
  let jobs: ClusterClient;
  let target: DemoTarget;
  let folder: string;
  let place: readonly string[];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-cluster-loadtests-"));
    writeFileSync(join(folder, "shop.ts"), FLOW);
    writeFileSync(join(folder, "fed-shop.ts"), FED_FLOW);
    writeFileSync(join(folder, "paths.csv"), "path\n/json\n");
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--workers", "1");
    jobs = await cluster.client();
    const [gate = ""] = cluster.ready.gates;
    place = ["--gate", gate, "--credentials", join(cluster.dir, "client.key")];
  }, MS_MAX);

  afterAll(async () => {
    await jobs?.close();
    await cluster?.stop();
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  }, MS_MAX);

  /** A node that leads and runs nothing, and where workers find it. */
  async function leader() {
    const database = await bench.database();
    // As the workers of other processes, so that it judges their silence by their own measure.
    const node = await bench.node({ database, settings: { ...defaultSettings, maxParallel: 0 } });
    return { database, client: bench.client(node) };
  }

  /** A worker in this process that knows a cluster. */
  async function withWorker(at: readonly string[] = place) {
    const { database, client } = await leader();
    const policy = { resultsDirectory: join(folder, "results"), workflows: undefined };
    await bench.node({
      ...{ database, role: "worker", settings: calmSettings, capabilities: { cluster: true } },
      executors: { loadtest: loadtestExecutor({ ...policy, bundles: true, cluster: at }) },
    });
    return client;
  }

  /** A worker as a separate machine, with everything it starts. */
  async function machine(database: string, nodeId: string): Promise<NodeProcess> {
    const data = ["--data-dir", join(folder, nodeId), "--node-id", nodeId, "--role", "worker"];
    const args = ["--database", database, ...data, ...place];
    const node = bench.keep(new NodeProcess(args, {}, ["--open"], true));
    await node.ready;
    return node;
  }

  async function startedLoad(client: QueueClient, seconds: number) {
    const before = { requests: target.stats().requests, jobs: (await jobs.jobs()).length };
    const args = ["--rate", "20", "--duration", `${seconds}s`, "--cores", "1"];
    const task = await submitLoadtest(client, `${target.url}/json`, { args, cluster: true });
    const loaded = async (): Promise<boolean> => target.stats().requests > before.requests + 20;
    return { task, before, loads: () => eventually("load comes", loaded, MS_MAX) };
  }

  async function jobsSince(count: number) {
    return (await jobs.jobs()).slice(count);
  }

  it(
    "run as by `run`: the target's counts equal the summary; metrics, report and verdict are the task's",
    async () => {
      const client = await withWorker();
      const before = { requests: target.stats().requests, jobs: (await jobs.jobs()).length };
      const options = { env: { SHOP: target.url }, args: ["--cores", "1"], cluster: true };
      const task = await submitLoadtest(client, join(folder, "shop.ts"), options);
      expect(JSON.stringify(task)).not.toContain("client.key");
      const heard: FollowMessage[] = [];
      const done = await client.wait(task.id, undefined, (message) => heard.push(message));
      expect(done).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
      const { summary } = done.result as { readonly summary: Summary };
      expect(summary.totals.requests).toBe(target.stats().requests - before.requests);
      expect(summary.totals.requests).toBeGreaterThan(0);
      expect(summary.name).toBe("shop.mjs");
      const [job] = await jobsSince(before.jobs);
      expect(job).toMatchObject({ status: "COMPLETED", name: "shop.mjs" });
      const figures = heard.filter(({ event }) => event === "progress").map(({ data }) => data);
      expect(figures).toContainEqual(
        expect.objectContaining({
          message: expect.objectContaining({
            ...{ job: job?.id, job_number: 1 },
            workflows: [expect.objectContaining({ name: "shop" })],
          }),
        }),
      );
      const files = await client.files(task.id);
      expect(files.map(({ name }) => name)).toEqual(["junit.xml", "report.html", "summary.json"]);
      const stored = files[2] === undefined ? "" : Buffer.from(await client.load(files[2]));
      expect(JSON.parse(stored.toString())).toEqual(summary);

      const strict = { ...options, args: ["--cores", "1", "--threshold", "latency.p99<0.0001ms"] };
      const missed = await submitLoadtest(client, join(folder, "fed-shop.ts"), strict);
      expect(missed.input).toMatchObject({ files: [{ path: "paths.csv" }] });
      const failed = await client.wait(missed.id);
      expect(failed).toMatchObject({ state: "FAILED", attempt_id: 1 });
      expect(failed.error?.message).toMatch(/the load test failed: .*latency/);
      expect((await client.files(missed.id)).map(({ name }) => name)).toContain("report.html");
      // Sent back by a person, it loads again: its job has ended, and its end was judged.
      await client.requeue(missed.id);
      expect(await client.wait(missed.id)).toMatchObject({ state: "FAILED", attempt_id: 2 });
      expect((await jobsSince(before.jobs)).map(({ status }) => status)).toEqual([
        ...["COMPLETED", "COMPLETED", "COMPLETED"],
      ]);
    },
    MS_MAX,
  );

  it(
    "end on the cluster when the task is cancelled, and are not run again when the cluster cancelled them",
    async () => {
      const client = await withWorker();
      const cancelled = await startedLoad(client, 600);
      await cancelled.loads();
      expect((await client.cancel(cancelled.task.id)).state).toBe("CANCELLED");
      const ended = async () => {
        const [job] = await jobsSince(cancelled.before.jobs);
        return job?.status === "CANCELLED" ? job : undefined;
      };
      const job = await eventually("the job is cancelled", ended, MS_MAX);
      expect(job.reason).toBe(INTERRUPTED_REASON);

      const stopped = await startedLoad(client, 600);
      await stopped.loads();
      const [other] = await jobsSince(stopped.before.jobs);
      await jobs.control(other?.id ?? "", { kind: "cancel", reason: "enough" }, "operator");
      const done = await client.wait(stopped.task.id);
      expect(done).toMatchObject({ state: "FAILED", attempt_id: 1 });
      expect(done.error?.message).toBe(`${other?.id} was cancelled on the cluster: enough`);
      expect((await client.files(stopped.task.id)).map(({ name }) => name)).toContain(
        "report.html",
      );
    },
    MS_MAX,
  );

  it(
    "continue after the loss of a machine: the next attempt follows the same job",
    async () => {
      const { database, client } = await leader();
      const first = await machine(database, "first");
      const { task, before, loads } = await startedLoad(client, 12);
      await loads();
      await first.loseMachine();
      await machine(database, "second");
      const done = await client.wait(task.id);
      expect(done).toMatchObject({ state: "SUCCEEDED", attempt_id: 2 });
      const { summary } = done.result as { readonly summary: Summary };
      expect(summary.totals.requests).toBe(target.stats().requests - before.requests);
      expect(await jobsSince(before.jobs)).toMatchObject([{ status: "COMPLETED" }]);
    },
    MS_MAX,
  );

  it(
    "end with their node, and the next attempt loads alone",
    async () => {
      const { database, client } = await leader();
      const first = await machine(database, "third");
      const { task, before, loads } = await startedLoad(client, 12);
      await loads();
      await first.end("SIGKILL");
      await machine(database, "fourth");
      const done = await client.wait(task.id);
      expect(done).toMatchObject({ state: "SUCCEEDED", attempt_id: 2 });
      const [cancelled, own, ...more] = await jobsSince(before.jobs);
      expect(more).toEqual([]);
      expect(cancelled).toMatchObject({ status: "CANCELLED", reason: INTERRUPTED_REASON });
      expect(own).toMatchObject({ status: "COMPLETED" });
      const end = (await jobs.events(cancelled?.id ?? "")).at(-1);
      expect(end).toMatchObject({ kind: "JobCompleted" });
      expect(own?.createdAt).toBeGreaterThanOrEqual(end?.at ?? Number.POSITIVE_INFINITY);
      const left = await jobs.progress(cancelled?.id ?? "", 0, false);
      const { summary } = done.result as { readonly summary: Summary };
      expect(summary.totals.requests + (left.summary?.totals?.requests ?? 0)).toBe(
        target.stats().requests - before.requests,
      );
    },
    MS_MAX,
  );

  it(
    "report that no node answers",
    async () => {
      const credentials = ["--credentials", join(cluster.dir, "client.key")];
      const client = await withWorker(["--gate", "127.0.0.1:9", ...credentials]);
      const options = { args: ["--duration", "1s"], cluster: true, max_attempts: 1 };
      const task = await submitLoadtest(client, `${target.url}/json`, options);
      const done = await client.wait(task.id);
      expect(done).toMatchObject({ state: "FAILED", attempt_id: 1 });
      expect(done.error?.message).toMatch(
        /the cluster did not take the load test: .*nobody answers .*127\.0\.0\.1:9/,
      );
    },
    MS_MAX,
  );
});
