/**
 * The figures of one job in two datacenters with two workers each, against what the target was told: the same load as
 * `run` makes, percentiles of all raw samples, and a threshold that only the merged figure crosses.
 */

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunSummary } from "../../../src/core/run/results/model.ts";
import { ended, LocalCluster, MS_MAX, start } from "./local-cluster.ts";

/** Each iteration tells the target what it measures. */
const FILE = `
  import { trend, workflow } from "hyperscalejs";
  const size = trend("size");
  export default workflow("sizes", { vus: 8, iterations: 400, metrics: [size] }).step(
    "tell",
    async ({ http, user }) => {
      const value = 1 + ((user.id * 7919 + user.iteration * 104729) % 99991) / 97;
      const response = await http.get((process.env["TARGET"] ?? "") + "/" + value);
      size.add(value);
      return response;
    },
  );
`;
const ITERATIONS = 400;
const BOTH = ["--datacenters", "dc1,dc2"];

describe("a job in two datacenters", () => {
  let cluster: LocalCluster;
  let server: Server;
  let told: number[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      told.push(Number(request.url?.slice(1)));
      response.end("ok");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const shape = ["--gates", "1", "--datacenters", "dc1,dc2", "--managers", "1", "--workers", "2"];
    cluster = await LocalCluster.start(...shape);
    await writeFile(join(cluster.dir, "sizes.ts"), FILE);
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    server.closeAllConnections();
    server.close();
  }, MS_MAX);

  async function summaryOf(command: string, ...flags: readonly string[]): Promise<RunSummary> {
    told = [];
    const out = join(cluster.dir, `out-${command}-${flags.length}`);
    const { port } = server.address() as AddressInfo;
    const end = await ended(
      start([
        ...[command, join(cluster.dir, "sizes.ts"), "--ui", "none", "--out", out],
        ...["-e", `TARGET=http://127.0.0.1:${port}`, "--graceful-stop", "60s", ...flags],
        ...(command === "submit" ? ["--dir", cluster.dir] : []),
      ]),
    );
    expect([0, 99], end.stderr).toContain(end.code);
    return JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
  }

  it(
    "is the same load as by run, and its percentiles are those of all raw samples to 0.1 percent",
    async () => {
      const runs = [
        await summaryOf("run"),
        await summaryOf("submit"),
        await summaryOf("submit", ...BOTH),
      ];
      for (const { totals, workflows } of runs) {
        expect(totals).toMatchObject({ requests: ITERATIONS, failed: 0 });
        expect(workflows.map(({ name }) => name)).toEqual(["sizes"]);
      }
      const [, , both] = runs;
      expect(both?.cluster?.datacenters.map(({ requests }) => requests)).toEqual([
        ITERATIONS / 2,
        ITERATIONS / 2,
      ]);
      expect(told).toHaveLength(ITERATIONS);
      const sorted = told.toSorted((one, other) => one - other);
      const [size] = both?.workflows[0]?.metrics ?? [];
      for (const share of [50, 90, 95, 99]) {
        const exact = sorted[Math.ceil((share / 100) * ITERATIONS) - 1] ?? 0;
        const merged = size?.values[`p${share}`] ?? 0;
        expect([share, Math.abs(merged - exact) / exact < 0.001]).toEqual([share, true]);
      }
    },
    MS_MAX,
  );

  it(
    "ends everywhere by a threshold that only the merged figure crosses",
    async () => {
      const most = 300;
      const load = ["--rate", "20", "--duration", "5m"];
      const rule = ["--threshold", `requests.count < ${most}`, "--abort-on-fail"];
      const {
        cluster: where,
        thresholds,
        totals,
        verdict,
      } = await summaryOf(...(["submit", ...BOTH, ...load, ...rule] as const));
      expect(verdict).toBe("failed");
      expect(thresholds[0]).toMatchObject({ passed: false, aborted: true });
      expect(totals?.requests).toBe(told.length);
      expect(told.length).toBeGreaterThanOrEqual(most);
      const parts = where?.datacenters.map(({ requests }) => requests) ?? [];
      expect(parts).toHaveLength(2);
      expect(Math.max(...parts)).toBeLessThan(most);
    },
    MS_MAX,
  );
});
