/** Cluster views for operators and tools: jobs, nodes and datacenters, from any gate. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shortIdOf } from "../../../src/client/job-names.ts";
import type { DatacenterView, JobView, NodeView } from "../../../src/core/cluster/messages.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX, until } from "./local-cluster.ts";

describe("three gates, three managers and a worker", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--gates", "3", "--managers", "3", "--workers", "1");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  async function json<Answer>(...args: readonly string[]): Promise<Answer> {
    const { code, stderr, stdout } = await cluster.command(...args, "--json");
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  }

  const flow = (): readonly string[] => [
    ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--ui", "none"],
    ...["--duration", "1s", "--graceful-stop", "60s", "-e", `HYPERSCALE_TARGET=${target.url}`],
  ];

  it(
    "list a finished job with its metrics, at every gate and manager",
    async () => {
      const before = target.stats().requests;
      const { code, stderr } = await cluster.command(...flow());
      expect([0, 99], stderr).toContain(code);
      const requests = target.stats().requests - before;
      expect(requests).toBeGreaterThan(0);
      const { jobs } = await json<{ jobs: readonly JobView[] }>("jobs", "list");
      expect(jobs.map(({ datacenters }) => datacenters)).toMatchObject([[{ requests }]]);
      for (const node of ["g1", "g2", "g3", "m1", "m2", "m3"]) {
        const client = await cluster.client(node);
        expect((await client.jobs()).map(({ datacenters }) => datacenters)).toMatchObject([
          [{ requests }],
        ]);
        await client.close();
      }
    },
    MS_MAX,
  );

  it(
    "show the version of every node, and which gate and manager accept no more work",
    async () => {
      const client = await cluster.client();
      const nodes = (): Promise<readonly NodeView[]> => client.nodes();
      const { nodes: all } = await json<{ nodes: readonly NodeView[] }>("nodes");
      expect(all.map(({ name }) => name)).toEqual(["g1", "g2", "g3", "m1", "m2", "m3", "w1"]);
      expect(new Set(all.map(({ version }) => version)).size).toBe(1);
      expect(all[0]?.version).toMatch(/^\d/);
      for (const node of ["g2", "m2"]) {
        expect(await cluster.readiness(node)).toEqual([200, { ready: true }]);
        expect((await cluster.command("drain", node)).code).toBe(0);
        await until(async () => {
          const shown = (await nodes()).find(({ name }) => name === node);
          return shown?.status === "draining" ? true : null;
        });
        expect(await cluster.readiness(node)).toEqual([503, { ready: false, why: "draining" }]);
      }
      const shown = (await nodes()).filter(({ status }) => status !== "alive");
      await client.close();
      expect(shown.map(({ name }) => name)).toEqual(["g2", "m2"]);
    },
    MS_MAX,
  );

  it(
    "call a datacenter without a worker unhealthy, and show the position of queued jobs",
    async () => {
      const client = await cluster.client();
      process.kill(cluster.node("w1").pid, "SIGKILL");
      await until(async () => {
        const [datacenter] = await client.datacenters();
        return datacenter?.status === "unhealthy" ? true : null;
      });
      // The command may ask another gate, which learns of it later.
      await until(async () => {
        const seen = await json<{ datacenters: readonly DatacenterView[] }>("datacenters");
        return seen.datacenters[0]?.status === "unhealthy" ? true : null;
      });
      const submitted = async (): Promise<string> =>
        (await cluster.command(...flow(), "--detach")).stdout.trim();
      const jobs = [await submitted(), await submitted()];
      for (const [at, job] of jobs.entries()) {
        const place = `position ${at + 1} of 2`;
        await until(async () => {
          const { reason, status } = await client.status(job);
          return status === "QUEUED" && reason?.includes(place) === true ? true : null;
        });
      }
      const [first = ""] = jobs;
      expect((await json<JobView>("jobs", "show", first)).reason).toContain("position 1 of 2");
      const { stdout } = await cluster.command("jobs", "list");
      for (const [at, job] of jobs.entries()) {
        const line = stdout.split("\n").find((one) => one.startsWith(shortIdOf(job)));
        expect(line).toContain("QUEUED");
        expect(line).toContain(`position ${at + 1} of 2`);
      }
      const followed = await cluster.command(...flow(), "--ui", "ci", "--timeout", "2s");
      expect(followed.stdout + followed.stderr).toContain("position 3 of 3");
      expect(followed.code).toBe(1);
      await client.close();
    },
    MS_MAX,
  );
});
