/**
 * Gates, datacenters, managers and workers as processes on the loopback: a file goes through a gate, and the gate
 * that leads a job may be killed.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ClusterClient, hasEnded } from "../../../src/client/client.ts";
import { connect } from "../../../src/client/index.ts";
import type { JobView } from "../../../src/core/cluster/messages.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { prepareJob } from "../../../src/runner/submission.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

describe("three gates and two datacenters", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  /** The restarted process of a killed gate. */
  let again: ChildProcess | null = null;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    const shape = ["--gates", "3", "--datacenters", "dc1,dc2", "--managers", "1", "--workers", "1"];
    cluster = await LocalCluster.start(...shape);
  }, MS_MAX);

  afterAll(async () => {
    again?.kill("SIGKILL");
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  /** Longer than a failover on a busy machine: the job is cancelled then. */
  const LONG_SECONDS = 1_200;
  const submission = (out: string, seconds: number): readonly string[] => [
    ...["submit", "examples/quickstart.ts", "--dir", cluster.dir, "--ui", "none", "--out", out],
    ...["--duration", `${seconds}s`, "--graceful-stop", "60s", "--only", "quickstart"],
    ...["--vus", "4"],
    ...["-e", `HYPERSCALE_TARGET=${target.url}`],
  ];

  /** The first job that runs, with who leads it. */
  const running = (client: ClusterClient): Promise<JobView> => {
    return until(async () => {
      const found = (await client.jobs()).find(({ status }) => status === "RUNNING");
      return found === undefined || found.leader === null ? null : found;
    });
  };

  const summaryIn = async (out: string) =>
    JSON.parse(await readFile(join(out, "summary.json"), "utf8"));

  it(
    "know both datacenters",
    async () => {
      const healthy = { status: "healthy", workers: 1 };
      // A gate that has just started learns of them a heartbeat later.
      const asked = async (): Promise<unknown> =>
        JSON.parse((await cluster.command("datacenters", "--json")).stdout);
      await expect.poll(asked).toMatchObject({
        datacenters: [
          { name: "dc1", ...healthy },
          { name: "dc2", ...healthy },
        ],
      });
    },
    MS_MAX,
  );

  it(
    "run a job in the best one, and count what the target counts",
    async () => {
      const out = join(cluster.dir, "out-one");
      const before = target.stats().requests;
      const { code, stderr } = await ended(start(submission(out, 1)));
      const summary = await summaryIn(out);
      expect(summary.totals.requests).toBe(target.stats().requests - before);
      expect(summary.totals.requests).toBeGreaterThan(0);
      expect(summary.cluster.datacenters).toMatchObject([{ status: "COMPLETED" }]);
      expect([0, 99], stderr).toContain(code);
    },
    MS_MAX,
  );

  it(
    "serve a program: it submits, follows and steers a job, and gets each result and the whole",
    async () => {
      const secret = (await readFile(join(cluster.dir, "client.key"), "utf8")).trim();
      const shop = connect({ addresses: cluster.ready.gates, secret, as: "a program" });
      const options = {
        ...{ only: ["quickstart"], duration: "4s", gracefulStop: "60s", key: "of a program" },
        env: { HYPERSCALE_TARGET: target.url },
      };
      const job = await shop.submit("examples/quickstart.ts", options);
      expect((await shop.submit("examples/quickstart.ts", options)).id).toBe(job.id);
      await expect(shop.submit("no-such.ts")).rejects.toThrow("there is no file no-such.ts");
      await expect(shop.submit("examples/quickstart.ts", { strict: true })).rejects.toThrow(
        "strict: needs prefer",
      );
      const seen: string[] = [];
      const results = (async () => {
        const names: string[] = [];
        for await (const { name } of job.results()) names.push(name);
        return names;
      })();
      for await (const { live, status } of job.progress({ everyMs: 100 })) {
        if (seen.at(-1) !== status) seen.push(status);
        if (live !== null && !seen.includes("scaled")) {
          seen.push("scaled");
          await job.scale(0.5);
        }
      }
      const { status, summary } = await job.completion();
      expect(["COMPLETED", seen.at(-1)]).toEqual([status, "COMPLETED"]);
      expect(seen).toContain("scaled");
      expect(await results).toEqual(summary?.workflows.map(({ name }) => name));
      const scaled = (await job.events()).find(({ kind }) => kind === "JobScaled");
      expect(scaled?.who).toBe("a program");
      expect((await job.status()).status).toBe("COMPLETED");
      expect((await shop.jobs()).map(({ id }) => id)).toContain(job.id);
      expect((await shop.datacenters()).map(({ name }) => name)).toEqual(["dc1", "dc2"]);
      await shop.close();
      await expect(job.status()).rejects.toThrow("this client is closed");
    },
    MS_MAX,
  );

  it(
    "make one job of a hundred equal submissions, though one of them is killed meanwhile",
    async () => {
      const options = {
        only: ["quickstart"],
        duration: "1s",
        env: { HYPERSCALE_TARGET: target.url },
      };
      const { files, submission } = await prepareJob("examples/quickstart.ts", options, () => {});
      const secret = (await readFile(join(cluster.dir, "client.key"), "utf8")).trim();
      const clients = cluster.ready.gates.map((_, at, gates) => {
        // Each begins with another gate, and knows them all.
        const managers = [...gates.slice(at), ...gates.slice(0, at)];
        return ClusterClient.open({ managers, secret });
      });
      const before = await clients[0]?.jobs();
      const asked = Array.from({ length: 100 }, (_, at) =>
        (clients[at % clients.length] as ClusterClient).submit(submission, files, "a hundred"),
      );
      process.kill(cluster.node("g2").pid, "SIGKILL");
      const ids = new Set(await Promise.all(asked));
      expect(ids.size).toBe(1);
      const after = (await clients[0]?.jobs()) ?? [];
      expect(after.length).toBe((before?.length ?? 0) + 1);
      // Wait for the job's end: its requests to the target must not leak into the next test.
      const [id = ""] = ids;
      await until(async () => {
        const { status } = (await clients[0]?.status(id)) ?? {};
        return status !== undefined && hasEnded(status) ? true : null;
      });
      await Promise.all(clients.map((client) => client.close()));
      again = start(["gate", "start", "--config", join(cluster.dir, "g2.json")]);
      again.stderr?.resume();
      await once(again.stdout as NodeJS.ReadableStream, "data");
    },
    MS_MAX,
  );

  it(
    "run one job in both, and continue it when its leader is killed: one exact result",
    async () => {
      const out = join(cluster.dir, "out-both");
      const before = target.stats().requests;
      const both = ["--datacenters", "dc1,dc2"];
      const submitted = ended(start([...submission(out, LONG_SECONDS), ...both]));
      const client = await cluster.client();
      const { id, leader } = await running(client);
      const isLoading = async (): Promise<boolean> => {
        const { datacenters } = await client.status(id);
        return datacenters.length === 2 && datacenters.every(({ requests }) => requests > 0);
      };
      await expect.poll(isLoading, { timeout: MS_MAX }).toBe(true);
      if (leader === "g2") again?.kill("SIGKILL");
      else process.kill(cluster.node(leader ?? "").pid, "SIGKILL");
      await until(async () => {
        const now = (await client.status(id)).leader;
        return now !== null && now !== leader ? true : null;
      });
      const made = target.stats().requests;
      await until(async () => (target.stats().requests > made + 50 ? true : null));
      await client.control(id, { kind: "cancel", reason: "all was seen" }, "test");
      const { code, stderr } = await submitted;
      const { cluster: where, lost, totals } = await summaryIn(out);
      expect(totals.requests, stderr).toBe(target.stats().requests - before);
      expect(lost).toEqual([]);
      expect(where.split).toEqual([
        { datacenter: "dc1", share: 0.5 },
        { datacenter: "dc2", share: 0.5 },
      ]);
      const [first, second] = where.datacenters;
      expect(Math.min(first.requests, second.requests)).toBeGreaterThan(0);
      expect(first.requests + second.requests).toBe(totals.requests);
      expect(code, stderr).toBe(130);
      const after = await client.status(id);
      await client.close();
      expect(after.status).toBe("CANCELLED");
      expect(after.leader).not.toBe(leader);
    },
    MS_MAX,
  );
});
