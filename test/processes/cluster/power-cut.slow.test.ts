/**
 * Everything loses power in the middle of a job, and restarts from its disks: every acknowledged job is there, and the
 * running one continues or ends, but is never forgotten.
 */

import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEnded } from "../../../src/client/client.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

const SHAPE = ["--gates", "1", "--managers", "3", "--workers", "2"];

describe("a power cut", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start(...SHAPE);
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  const submitted = async (...flags: readonly string[]): Promise<string> => {
    const file = ["submit", "examples/quickstart.ts", "--only", "quickstart", "--detach"];
    const env = ["-e", `HYPERSCALE_TARGET=${target.url}`, "--graceful-stop", "60s", "--vus", "4"];
    const { code, stderr, stdout } = await ended(
      start([...file, ...env, ...flags, "--dir", cluster.dir]),
    );
    expect(code, stderr).toBe(0);
    return stdout.trim();
  };

  it(
    "forgets no acknowledged job: finished, running and queued",
    async () => {
      const before = await cluster.client();
      const over = await submitted("--duration", "1s");
      await until(async () => (hasEnded((await before.status(over)).status) ? true : null));
      const { summary } = await before.progress(over, 0, false);
      const ran = await submitted("--duration", "20m", "--cores", "2");
      const made = target.stats().requests;
      await until(async () => (target.stats().requests - made > 50 ? true : null));
      const waited = await submitted("--duration", "1s", "--cores", "2");
      await until(async () => ((await before.status(waited)).status === "QUEUED" ? true : null));
      await before.close();

      cluster.up.kill("SIGKILL");
      for (const { pid } of cluster.left()) process.kill(pid, "SIGKILL");
      if (cluster.up.exitCode === null && cluster.up.signalCode === null)
        await once(cluster.up, "exit");
      await until(async () => (cluster.left().length === 0 ? true : null));
      cluster = await LocalCluster.startIn(cluster.dir, ...SHAPE);

      const client = await cluster.client();
      const jobs = await until(async () => {
        const known = await client.jobs();
        return known.length < 3 ? null : known;
      });
      expect(jobs.map(({ id }) => id).sort()).toEqual([over, ran, waited].sort());
      expect((await client.progress(over, 0, false)).summary).toEqual(summary);
      // Restarted workers run nothing of it: its load continues there, and the result reports the loss.
      const again = target.stats().requests;
      const went = await until(async () => {
        if (hasEnded((await client.status(ran)).status)) return "ended";
        return target.stats().requests - again > 50 ? "on" : null;
      });
      if (went === "on")
        await client.control(ran, { kind: "cancel", reason: "all was seen" }, "test");
      const ends = await until(async () => {
        const views = [
          await client.progress(ran, 0, false),
          await client.progress(waited, 0, false),
        ];
        return views.every(({ status }) => hasEnded(status)) ? views : null;
      });
      const [cut, next] = ends;
      expect(next?.status).toBe("COMPLETED");
      // Managers that take over before the workers are back give it up, and say why.
      expect(["CANCELLED", "FAILED"]).toContain(cut?.status);
      if (cut?.status === "FAILED") expect(cut.reason).not.toBeNull();
      else expect(cut?.summary?.lost.length).toBeGreaterThan(0);
      await until(async () =>
        (await client.nodes()).every(({ coresUsed }) => coresUsed === 0) ? true : null,
      );
      await client.close();
    },
    MS_MAX,
  );
});
