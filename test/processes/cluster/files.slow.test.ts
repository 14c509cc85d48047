/**
 * Files of jobs on nodes whose disks are small or corrupt, as processes: the client learns the problem, or corrupt
 * files are fetched again. Also two jobs that do not fit beside each other.
 */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX, until } from "./local-cluster.ts";

describe("a cluster of one manager and one worker with a cache of 1 MiB", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    const small = { HYPERSCALE_CACHE: "1MiB" };
    cluster = await LocalCluster.startWith(small, "--gates", "0", "--workers", "1");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  async function flow(name: string, options: string): Promise<string> {
    const file = join(cluster.dir, `${name}.ts`);
    await writeFile(
      file,
      `import { feed, flow, http } from "hyperscalejs";
       const shop = http.target("${target.url}");
       export default flow("${name}", { ${options} }, async ({ step }) => {
         await step("home", shop.get("/"));
       });`,
    );
    return file;
  }

  const submit = (file: string) =>
    cluster.command("submit", file, "--ui", "none", "--graceful-stop", "60s");

  it(
    "reports that the data of a job do not fit",
    async () => {
      await writeFile(join(cluster.dir, "large.csv"), `name\n${"x".repeat(99)}\n`.repeat(30_000));
      const data = 'vus: 1, iterations: 1, data: { who: feed.csv("large.csv") }';
      const { code, stderr } = await submit(await flow("large", data));
      expect(code).toBe(1);
      expect(stderr).toMatch(/w1.*\b(cache|disk|room)\b/);
    },
    MS_MAX,
  );

  it(
    "fetches again what has rotted",
    async () => {
      const file = await flow("small", "vus: 1, iterations: 5");
      for (const rotten of ["w1", "m1"]) {
        const first = await submit(file);
        expect(first.code, first.stderr).toBe(0);
        const folder = join(cluster.dir, rotten, "blobs");
        for (const blob of await readdir(folder)) {
          const bytes = await readFile(join(folder, blob));
          bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0xff;
          await writeFile(join(folder, blob), bytes);
        }
        const before = target.stats().requests;
        const again = await submit(file);
        expect([rotten, again.code], again.stderr).toEqual([rotten, 0]);
        expect(target.stats().requests - before).toBe(5);
      }
    },
    MS_MAX,
  );

  it(
    "queues a job that does not fit beside another, reports it, and runs it afterwards",
    async () => {
      const first = submit(await flow("first", 'vus: 1, duration: "10m"'));
      const client = await cluster.client();
      const jobIn = (wanted: string): Promise<string> =>
        until(async () => {
          const job = (await client.jobs()).find(({ status }) => status === wanted);
          return job?.id ?? null;
        });
      const running = await jobIn("RUNNING");
      const second = submit(await flow("second", "vus: 1, iterations: 1"));
      const waiting = await jobIn("QUEUED");
      await until(
        async () => (await client.status(waiting)).reason?.includes("none is free") ?? null,
      );
      // The submitting client polls every second.
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      await client.control(running, { kind: "cancel", reason: "enough" }, "test");
      const { code, stderr } = await second;
      expect(stderr).toContain("is queued: it needs 1 core, none is free");
      expect([(await first).code, code]).toEqual([130, 0]);
      await client.close();
    },
    MS_MAX,
  );
});
