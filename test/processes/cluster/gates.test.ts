/**
 * Gates, datacenters, managers and workers as processes on the loopback: a file goes through a gate, and the gate
 * that leads a job may be killed.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import type { JobView } from "../../../src/core/tiers/messages.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

describe("three gates and two datacenters", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    const shape = ["--gates", "3", "--datacenters", "dc1,dc2", "--managers", "1", "--workers", "1"];
    cluster = await LocalCluster.start(...shape);
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  const submission = (out: string, seconds: number): readonly string[] => [
    ...["submit", "examples/quickstart.ts", "--dir", cluster.dir, "--ui", "none", "--out", out],
    ...["--duration", `${seconds}s`, "--graceful-stop", "60s", "--only", "quickstart"],
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
      // A gate that has just come up hears of them a heartbeat later.
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
      const { code, stderr } = await ended(start(submission(out, 3)));
      const summary = await summaryIn(out);
      expect(summary.totals.requests).toBe(target.stats().requests - before);
      expect(summary.totals.requests).toBeGreaterThan(0);
      expect(summary.cluster.datacenters).toMatchObject([{ name: "dc1", status: "COMPLETED" }]);
      expect([0, 99], stderr).toContain(code);
    },
    MS_MAX,
  );

  it(
    "run one job in both, and go on with it when its leader is killed: one exact result",
    async () => {
      const out = join(cluster.dir, "out-both");
      const before = target.stats().requests;
      const both = ["--datacenters", "dc1,dc2"];
      const submitted = ended(start([...submission(out, 15), ...both]));
      const client = await cluster.client();
      const { id, leader } = await running(client);
      const isLoading = async (): Promise<boolean> => {
        const { datacenters } = await client.status(id);
        return datacenters.length === 2 && datacenters.every(({ requests }) => requests > 0);
      };
      await expect.poll(isLoading, { timeout: MS_MAX }).toBe(true);
      process.kill(cluster.node(leader ?? "").pid, "SIGKILL");
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
      expect([0, 99], stderr).toContain(code);
      const after = await client.status(id);
      await client.close();
      expect(after.status).toBe("COMPLETED");
      expect(after.leader).not.toBe(leader);
    },
    MS_MAX,
  );
});
