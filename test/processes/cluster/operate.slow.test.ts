/**
 * Operations on a cluster of processes: start it in the background, drain the manager that leads a job and a worker
 * that runs it, forget a worker, stop everything. Also mistakes of users.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../src/client/client.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

/** Null: some manager still reports it as alive. All have forgotten it: an earlier answer was late. */
async function isForgotten(client: ClusterClient, node: string): Promise<true | null> {
  const refused = await client.removeNode(node).then(
    () => null,
    (error: Error) => error.message,
  );
  if (refused === null || refused.includes(`there is no node ${node}`)) return true;
  if (refused.includes(`${node} is alive`)) return null;
  throw new Error(refused);
}

describe("a cluster of three managers and two workers", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  let folder: string;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    const shape = ["--gates", "1", "--managers", "3", "--workers", "2", "--profile", "local"];
    cluster = await LocalCluster.start(...shape);
    folder = await mkdtemp(join(tmpdir(), "hyperscale-operate-"));
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
    if (folder !== undefined) await rm(folder, { recursive: true });
  }, MS_MAX);

  it(
    "continues a job whose leader and one of whose workers are drained",
    async () => {
      const client = await cluster.client();
      const { stdout: id } = await cluster.command(
        ...["submit", "examples/quickstart.ts", "--detach", "--only", "quickstart"],
        ...["--duration", "20m", "--graceful-stop", "60s", "--vus", "4"],
        ...["-e", `HYPERSCALE_TARGET=${target.url}`],
      );
      const job = id.trim();
      await until(async () => ((await client.status(job)).status === "RUNNING" ? true : null));
      const leader = await until(async () => {
        const nodes = await client.nodes();
        return nodes.find(({ leads, role }) => role === "manager" && leads > 0) ?? null;
      });
      await Promise.all([client.drain(leader.name), client.drain("w2")]);
      await until(async () => {
        const { leader: now } = await client.status(job);
        const w2 = (await client.nodes()).find(({ name }) => name === "w2");
        const isMoved = now !== null && now !== leader.name;
        return isMoved && w2?.status === "draining" ? true : null;
      });
      const before = target.stats().requests;
      await until(async () => (target.stats().requests > before ? true : null));
      await client.control(job, { kind: "cancel", reason: "all was seen" }, "test");
      const end = await until(async () => {
        const progress = await client.progress(job, 0, false);
        return progress.summary === null ? null : progress;
      });
      expect(end).toMatchObject({ status: "CANCELLED", summary: { lost: [] } });
      const drained = await cluster.command("drain", "w2");
      expect(drained).toMatchObject({ code: 0, stdout: expect.stringContaining("w2 is drained") });
      expect(await cluster.readiness("w1")).toEqual([200, { ready: true }]);
      expect(await cluster.readiness("w2")).toEqual([503, { ready: false, why: "draining" }]);
      const events = await client.events(job);
      const leaders = events.filter(({ kind }) => kind === "adopted").map(({ who }) => who);
      expect(leaders[0]).toBe(leader.name);
      expect(leaders.length).toBeGreaterThan(1);
      await client.close();
    },
    MS_MAX,
  );

  it(
    "does not take in a worker with the name or the directory of another, or of another datacenter",
    async () => {
      const config = JSON.parse(await readFile(join(cluster.dir, "w1.json"), "utf8"));
      const cases = [
        [{ dataDir: "second" }, "another worker has the name w1: names are unique, rename one"],
        [{}, "is in use by another process"],
        [
          { name: "w9", dataDir: "w9", datacenter: "dc9" },
          "is a manager of dc1, and this is a worker of dc9",
        ],
      ] as const;
      for (const [changes, words] of cases) {
        const { api: _, ...second } = { ...config, ...changes };
        const file = join(cluster.dir, "second.json");
        await writeFile(file, JSON.stringify(second));
        const child = start(["worker", "start", "--config", file]);
        let said = "";
        child.stderr?.on("data", (text) => {
          said += String(text);
        });
        await until(async () => (said.includes(words) ? true : null));
        child.kill("SIGKILL");
        expect(said).not.toContain("manager.up");
      }
    },
    MS_MAX,
  );

  it(
    "shows a killed worker and a killed manager as lost, and forgets the worker on request",
    async () => {
      const client = await cluster.client();
      process.kill(cluster.node("w2").pid, "SIGKILL");
      process.kill(cluster.node("m3").pid, "SIGKILL");
      const statusOf = async (node: string): Promise<string | undefined> =>
        (await client.nodes()).find(({ name }) => name === node)?.status;
      for (const node of ["w2", "m3"])
        await until(async () => ((await statusOf(node)) === "lost" ? true : null));
      await expect(client.removeNode("m3")).rejects.toThrow("stands in the configuration");
      // Each manager finds out by itself: the other may still take the worker for alive.
      await until(() => isForgotten(client, "w2"));
      expect(await statusOf("w2")).toBeUndefined();
      await expect(client.drain("w9")).rejects.toThrow("there is no node w9");
      await client.close();
    },
    MS_MAX,
  );

  it(
    "reports what is wrong with a job in the job's own terms",
    async () => {
      const file = async (name: string, setup: string): Promise<string> => {
        const path = join(folder, name);
        await writeFile(
          path,
          `import { flow, http } from "hyperscalejs";
const shop = http.target("${target.url}");
export default flow("shop", { vus: 1, duration: "1s", setup: ${setup} },
  async ({ step }) => { await step("home", shop.get("/")); });`,
        );
        return path;
      };
      // Other problems of a set-up are covered by job-runner.test.ts, time-limits.test.ts, bounded-event.test.ts.
      const throws = await file("throws.ts", '() => { throw new Error("closed"); }');
      const failed = await cluster.command("submit", throws, "--ui", "none");
      expect([failed.code, failed.stderr]).toEqual([
        1,
        expect.stringContaining("setup threw: closed"),
      ]);
      const large = ["--cores", "100", "--timeout", "1s"];
      const good = await file("good.ts", "() => 1");
      const waited = await cluster.command("submit", good, "--ui", "ci", ...large);
      expect(waited.code).toBe(1);
      expect(waited.stdout + waited.stderr).toContain("queued: it needs 100 free cores");
      expect(waited.stderr).toContain("no cores were free within 1s, its limit");
      const unknown = await cluster.command("submit", good, "--datacenters", "dc9");
      expect(unknown).toMatchObject({ code: 2 });
      expect(unknown.stderr).toContain('there is no datacenter "dc9": there are dc1');
    },
    2 * MS_MAX,
  );
});
