/**
 * Messages and exit codes of `submit` and `jobs` for invalid requests and on termination signals: with a cluster that
 * answers, and with one whose only gate was killed.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shortIdOf } from "../../../src/client/job-names.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, freePort, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

describe("a cluster of one gate, one manager and one worker", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--workers", "1");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  const load = (): readonly string[] => [target.url, "--rate", "5", "--max-vus", "5"];
  const long = (): readonly string[] => [...load(), "--duration", "10m"];

  // Values out of range are covered by client.test.ts; here each is named by its flag.
  it.each([
    ["--idempotency-key", "--idempotency-key is empty: it takes 1 to 128 bytes of text"],
    ["--rejoin", "--rejoin is empty"],
  ])(
    "is not asked with an empty %s",
    async (flag, problem) => {
      const submitted = await cluster.command("submit", ...load(), "--detach", flag, "");
      expect(submitted.stderr).toContain(`hyperscale submit: ${problem}`);
      expect([submitted.code, submitted.stdout]).toEqual([2, ""]);
      const client = await cluster.client();
      expect(await client.jobs()).toEqual([]);
      await client.close();
    },
    MS_MAX,
  );

  it(
    "takes a command line that is longer than a message carries, and does not know every job",
    async () => {
      const body = ["--method", "POST", "--body", "b".repeat(20_000)];
      const detached = ["--iterations", "1", "--detach"];
      const submitted = await cluster.command("submit", target.url, ...body, ...detached);
      expect([submitted.code, submitted.stderr]).toEqual([0, ""]);
      const unknown = await cluster.command("jobs", "show", "nobody");
      expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
      expect(unknown.stderr).toContain("nobody");
    },
    MS_MAX,
  );

  it(
    "cancels at the first SIGTERM, and its command ends with the results",
    async () => {
      const out = join(cluster.dir, "cancelled");
      const flags = ["--json", "--out", out, "--dir", cluster.dir];
      const child = start(["submit", ...long(), ...flags]);
      const end = ended(child);
      await begun(child);
      child.kill("SIGTERM");
      const { code, stderr, stdout } = await end;
      expect(code, stderr).toBe(130);
      expect(stdout).toContain("summary.json");
      const { jobs } = JSON.parse((await cluster.command("jobs", "list", "--json")).stdout);
      expect(jobs.at(-1)).toMatchObject({ status: "CANCELLED" });
    },
    MS_MAX,
  );

  describe("whose gate is killed", () => {
    let job: string;
    const followers: ChildProcess[] = [];

    beforeAll(async () => {
      job = (await cluster.command("submit", ...long(), "--detach")).stdout.trim();
      for (let i = 0; i < 3; i++)
        followers.push(start(["jobs", "attach", job, "--json", "--dir", cluster.dir]));
      await Promise.all(followers.map(begun));
      process.kill(cluster.node("g1").pid, "SIGKILL");
    }, MS_MAX);

    afterAll(() => {
      for (const child of followers) child.kill("SIGKILL");
    });

    it.each([
      ["the first SIGTERM, as nobody answers", 0, ["SIGTERM"]],
      ["the second SIGTERM", 1, ["SIGTERM", "SIGTERM"]],
      ["the second SIGINT", 2, ["SIGINT", "SIGINT"]],
    ] as const)(
      "ends jobs attach at %s, and does not say that the job is being cancelled",
      async (_what, at, signals) => {
        const child = followers[at];
        if (child === undefined) throw new Error("not started");
        const end = ended(child);
        for (const signal of signals) {
          const heard = once(child.stdout as NodeJS.ReadableStream, "data");
          child.kill(signal);
          if (signals.length > 1) await Promise.race([heard, end]);
        }
        const { code, stderr } = await end;
        const short = shortIdOf(job);
        expect(stderr).toBe(
          `hyperscale: nobody has confirmed that ${short} is cancelled, and it may still run; ` +
            `cancel it with: hyperscale jobs cancel ${short}; follow it with: hyperscale jobs attach ${short}\n`,
        );
        expect(code).toBe(130);
      },
      MS_MAX,
    );

    it.each([1, 2])(
      "ends a submit without an answer after %i SIGTERM",
      async (count) => {
        const metrics = `127.0.0.1:${await freePort()}`;
        const place = ["--metrics", metrics, "--ui", "none", "--dir", cluster.dir];
        const child = start(["submit", ...load(), ...place]);
        const end = ended(child);
        // The reporter listens once the job is prepared, and the job is sent after that.
        await until(() => fetch(`http://${metrics}/metrics`).then(String, () => null));
        const asked = once(child.stderr as NodeJS.ReadableStream, "data");
        child.kill("SIGTERM");
        expect(String((await asked)[0])).toContain(
          "cancelling as soon as the cluster has answered",
        );
        if (count > 1) child.kill("SIGTERM");
        const { code, stderr } = await end;
        expect(stderr).toContain("nobody has answered yet, and the cluster may have taken the job");
        expect(code).toBe(130);
      },
      MS_MAX,
    );
  });
});

/** Waits for metrics: the command follows the job. */
function begun(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout?.on("data", (part) => {
      said += String(part);
      if (said.includes('"event":"figures"')) resolve();
    });
    child.once("close", () => reject(new Error(`it ended: ${said}`)));
  });
}
