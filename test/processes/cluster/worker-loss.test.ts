/**
 * One manager and three workers as processes: the worker that has a job's only core is told to stop, or killed,
 * while the job runs. Its share goes on at another worker, and the result says what is missing.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunSummary } from "../../../src/core/run/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

describe("a worker that goes in mid-job", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--gates", "0", "--managers", "1", "--workers", "3");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  /** The worker that has the job's only core, when some load is made and told. */
  async function workerOf(before: number): Promise<string> {
    const client = await cluster.client();
    const worker = await until(async () => {
      // For some seconds: of a core that has hardly begun nobody knows what it made.
      if (target.stats().requests - before < 1_000) return null;
      const running = (await client.jobs()).find(({ status }) => status === "RUNNING");
      if (running === undefined) return null;
      const { workflows } = await client.status(running.id);
      return workflows[0]?.attempts.at(-1)?.worker ?? null;
    });
    await client.close();
    return worker;
  }

  /** A job of one core whose worker gets this signal: its result, and what the target was asked. */
  async function signalled(signal: "SIGKILL" | "SIGTERM") {
    const out = join(cluster.dir, signal);
    const file = [
      "submit",
      "examples/quickstart.ts",
      "--only",
      "quickstart",
      "--cores",
      "1",
      "--vus",
      "4",
    ];
    const flags = ["--ui", "none", "--out", out, "--duration", "30s", "--graceful-stop", "60s"];
    const env = ["-e", `HYPERSCALE_TARGET=${target.url}`, "--dir", cluster.dir];
    const before = target.stats().requests;
    const ending = ended(start([...file, ...flags, ...env]));
    const worker = await workerOf(before);
    process.kill(cluster.node(worker).pid, signal);
    const { code, stderr } = await ending;
    expect([0, 99], stderr).toContain(code);
    const summary: RunSummary = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
    const { lost, totals, workflows } = summary;
    expect(workflows.map(({ status }) => status)).toEqual(["completed"]);
    const loss = lost.find((one) => one.worker === worker);
    expect(loss?.dealtAgainTo).toEqual(expect.any(String));
    expect(loss?.missingMs).toBeGreaterThan(0);
    const counted = totals?.requests ?? 0;
    expect(counted).toBeGreaterThan(0);
    return { loss, lost, counted, made: target.stats().requests - before };
  }

  it(
    "told to stop, waits, then hands its share over: every request is counted",
    async () => {
      const { counted, loss, made } = await signalled("SIGTERM");
      expect(loss?.what).toContain("told to stop");
      expect(loss).toMatchObject({ exact: true, requestsNotCounted: 0 });
      expect(counted).toBe(made);
    },
    MS_MAX,
  );

  it(
    "killed, is made up for by a free one, and what it did not tell is stated",
    async () => {
      const { counted, loss, lost, made } = await signalled("SIGKILL");
      expect(loss).toMatchObject({ exact: false, requestsNotCounted: expect.any(Number) });
      const uncounted = lost.reduce((sum, one) => sum + (one.requestsNotCounted ?? 0), 0);
      expect(counted).toBeLessThanOrEqual(made);
      expect(made).toBeLessThanOrEqual(counted + uncounted);
    },
    MS_MAX,
  );
});
