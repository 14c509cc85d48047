/**
 * Three managers and two workers as processes: the manager that leads a job is killed while the job runs, and a
 * client that knows only that manager still ends with the job's result. Any manager tells the result of a job.
 */

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

interface Summary {
  readonly totals: { readonly requests: number };
  readonly lost: readonly unknown[];
  readonly verdict: string;
}

describe("a cluster of three managers", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--gates", "0", "--managers", "3", "--workers", "2");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  function flagsOf(out: string, durationSeconds: number): readonly string[] {
    return [
      ...["--ui", "none", "--out", out, "--duration", `${durationSeconds}s`],
      ...["--graceful-stop", "60s", "-e", `HYPERSCALE_TARGET=${target.url}`],
      ...["--only", "quickstart", "--vus", "4"],
    ];
  }

  async function summaryIn(out: string): Promise<Summary> {
    return JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
  }

  it(
    "tells the result of an ended job by any of them, also to who named one only",
    async () => {
      const place = cluster.placeOf("m2");
      const file = ["submit", "examples/quickstart.ts", "--detach"];
      const flags = flagsOf(join(cluster.dir, "detached"), 2);
      const submitted = await ended(start([...file, ...flags, ...place]));
      const job = submitted.stdout.trim();
      expect(submitted, submitted.stderr).toMatchObject({ code: 0 });
      const results: Summary[] = [];
      for (const manager of ["m1", "m2", "m3"]) {
        const out = join(cluster.dir, `of-${manager}`);
        const attached = await cluster.at(
          ...([manager, "jobs", "attach", job, "--ui", "none", "--out", out] as const),
        );
        expect([0, 99], attached.stderr).toContain(attached.code);
        results.push(await summaryIn(out));
      }
      expect(results[0]?.totals.requests).toBeGreaterThan(0);
      expect(results[1]).toEqual(results[0]);
      expect(results[2]).toEqual(results[0]);
      const out = join(cluster.dir, "results");
      const written = await cluster.at("m3", "jobs", "results", job, "--out", out);
      expect(written, written.stderr).toMatchObject({ code: 0 });
      expect(await summaryIn(out)).toEqual(results[0]);
    },
    MS_MAX,
  );

  it(
    "goes on when the one that leads a job is killed, and the client ends with its result",
    async () => {
      const out = join(cluster.dir, "killed");
      const before = target.stats().requests;
      const client = await cluster.client();
      const ending = ended(
        start([
          ...["submit", "examples/quickstart.ts", ...flagsOf(out, 20)],
          ...cluster.placeOf("m1"),
        ]),
      );
      const leader = await until(async () => {
        const jobs = await client.jobs();
        return jobs.find(({ status }) => status === "RUNNING")?.leader ?? null;
      });
      process.kill(cluster.node(leader).pid, "SIGKILL");
      const { code, stderr } = await ending;
      const { lost, totals, verdict } = await summaryIn(out);
      expect([0, 99], stderr).toContain(code);
      expect(["passed", "failed"]).toContain(verdict);
      const counted = target.stats().requests - before;
      expect(totals.requests).toBeGreaterThan(0);
      // A machine so busy that a worker was taken for lost has said so.
      if (lost.length === 0) expect(totals.requests).toBe(counted);
      else expect(totals.requests).toBeLessThanOrEqual(counted);
      const alive = ["m1", "m2", "m3"].find((name) => name !== leader) ?? "";
      // Each manager finds out by itself.
      await until(async () => {
        const { nodes } = JSON.parse((await cluster.at(alive, "nodes", "--json")).stdout);
        const { status } = nodes.find(({ name }: { name: string }) => name === leader);
        return status === "lost" ? true : null;
      });
      await client.close();
    },
    MS_MAX,
  );

  it(
    "is ended by cluster down when cluster up was killed",
    async () => {
      cluster.up.kill("SIGKILL");
      await once(cluster.up, "exit");
      expect(cluster.left()).not.toEqual([]);
      const again = await cluster.command("cluster", "up");
      expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("cluster down") });
      const down = await cluster.command("cluster", "down");
      expect(down, down.stderr).toMatchObject({ code: 0 });
      // Whoever has inherited them may take a while to notice.
      await until(async () => (cluster.left().length === 0 ? true : null));
    },
    MS_MAX,
  );
});
