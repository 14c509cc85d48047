/**
 * Every node of a cluster is stopped with SIGTERM and restarted as the next version, one after the other, while a job
 * runs: the job continues, and every request that the target answered is counted. (AD-25, SCALE-1)
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunSummary } from "../../../src/core/load/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { MINOR_MIN, PROTOCOL } from "../../../src/wire/version.ts";
import { ended, LocalCluster, MS_MAX, start, until } from "./local-cluster.ts";

/** Workers last, as the operator's page says. */
const ORDER = ["gate", "manager", "worker"];
/** Longer than any restart of all nodes; the job is cancelled when they are done. */
const LOAD = "20m";

describe("a rolling upgrade", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.startWith(
      // A worker hands its share over soon: the job does not end before.
      { HYPERSCALE_PROTOCOL_MINOR: String(MINOR_MIN), HYPERSCALE_DRAIN_DEADLINE: "2s" },
      ...["--gates", "1", "--managers", "3", "--workers", "2", "--profile", "local"],
    );
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  it(
    "from one minor of the protocol to the next loses no job and no figure",
    async () => {
      const out = join(cluster.dir, "rolling");
      const submitted = ended(
        start([
          ...["submit", "examples/quickstart.ts", "--only", "quickstart", "--cores", "1"],
          ...["--dir", cluster.dir, "--ui", "none", "--out", out, "--graceful-stop", "60s"],
          ...["--vus", "4", "--duration", LOAD, "-e", `HYPERSCALE_TARGET=${target.url}`],
        ]),
      );
      const client = await cluster.client();
      const { id } = await until(async () => {
        const [job] = await client.jobs();
        return job?.status === "RUNNING" && target.stats().requests > 0 ? job : null;
      });
      for (const role of ORDER) {
        for (const node of cluster.ready.processes.filter((one) => one.role === role)) {
          await cluster.end(node.name, "SIGTERM");
          await cluster.startAgain(node.name);
          const before = target.stats().requests;
          await until(async () => (target.stats().requests > before + 20 ? true : null));
        }
      }
      expect((await client.status(id)).status).toBe("RUNNING");
      await client.control(id, { kind: "cancel", reason: "all are new" }, "test");
      const { code, stderr } = await submitted;
      expect(code, stderr).toBe(130);
      const summary: RunSummary = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
      // A worker that is asked to stop hands its share over, and every request of it is counted.
      const handed = summary.lost.filter(({ what }) => what.includes("told to stop"));
      expect(handed.length).toBeGreaterThan(0);
      for (const { dealtAgainTo, missingMs } of handed) {
        expect(dealtAgainTo).toEqual(expect.any(String));
        expect(missingMs).toBeGreaterThan(0);
      }
      for (const loss of summary.lost)
        expect(loss).toMatchObject({ exact: true, requestsNotCounted: 0 });
      expect(summary.totals?.requests).toBe(target.stats().requests);
      const nodes = await client.nodes();
      expect(nodes.every(({ status }) => status === "alive")).toBe(true);
      await client.close();
      expect(PROTOCOL.minor).toBeGreaterThan(MINOR_MIN);
    },
    2 * MS_MAX,
  );
});
