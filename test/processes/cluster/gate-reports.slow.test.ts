/** Reporters in the configuration of the gates: they get every job, from any client, and its end once. (C30-18) */

import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import type { RunSummary } from "../../../src/core/load/results/model.ts";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX, until } from "./local-cluster.ts";

interface Point {
  readonly kind: "interval" | "summary";
  readonly scope: string;
  readonly figure: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, number>>;
}

interface Trace {
  readonly resourceSpans: readonly [
    {
      readonly scopeSpans: readonly [
        { readonly spans: readonly { readonly name: string; readonly traceId: string }[] },
      ];
    },
  ];
}

/** A collector of OpenTelemetry that keeps what it gets of traces. */
async function startCollector() {
  const traces: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      if (request.url === "/v1/traces") traces.push(gunzipSync(Buffer.concat(parts)).toString());
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { traces, server, url: `http://127.0.0.1:${port}` };
}

describe("three gates with a reporter each", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;
  let folder: string;
  let collector: Awaited<ReturnType<typeof startCollector>>;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    folder = await mkdtemp(join(tmpdir(), "hyperscale-gate-reports-"));
    const shape = ["--gates", "3", "--managers", "1", "--workers", "1", "--profile", "local"];
    collector = await startCollector();
    const reports = [
      `ndjson=${join(folder, "{job}.ndjson")},every=1s`,
      `otlp=${collector.url},spans=true`,
    ];
    cluster = await LocalCluster.start(
      ...shape,
      ...reports.flatMap((one) => ["--gate-report", one]),
    );
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
    collector.server.closeAllConnections();
    collector.server.close();
    await rm(folder, { recursive: true, force: true });
  }, MS_MAX);

  const pointsOf = async (job: string): Promise<readonly Point[]> => {
    const file = join(folder, `${job}.ndjson`);
    const text = existsSync(file) ? await readFile(file, "utf8") : "";
    const lines = text.split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Point);
  };

  const isVerdict = ({ figure, kind }: Point): boolean => kind === "summary" && figure === "passed";

  /** The points of a job when its end is among them. */
  const allPointsOf = (job: string): Promise<readonly Point[]> =>
    until(async () => {
      const points = await pointsOf(job);
      return points.some(isVerdict) ? points : null;
    });

  const submitted = async (key: string, seconds: number) => {
    const secret = (await readFile(join(cluster.dir, "client.key"), "utf8")).trim();
    const client = connect({ addresses: cluster.ready.gates, secret, as: "a test" });
    const job = await client.submit("examples/quickstart.ts", {
      ...{ only: ["quickstart"], duration: `${seconds}s`, gracefulStop: "60s", key },
      env: { HYPERSCALE_TARGET: target.url },
    });
    return { client, job };
  };

  /** Expects points of the whole run, in every form in which it was reported. */
  const expectTold = (points: readonly Point[], job: string, summary: RunSummary): void => {
    expect(points.filter(isVerdict)).toHaveLength(1);
    expect(new Set(points.map(({ labels }) => labels["run_id"]))).toEqual(new Set([job]));
    const of = (kind: Point["kind"], scope: string, figure: string): Point["values"][] =>
      points
        .filter((one) => one.kind === kind && one.scope === scope && one.figure === figure)
        .map(({ values }) => values);
    const { totals } = summary;
    expect(of("summary", "run", "requests")).toMatchObject([{ total: totals?.requests }]);
    expect(of("summary", "run", "latency_ms")).toMatchObject([{ ...totals?.latencyMs }]);
    const counted = of("interval", "run", "requests");
    expect(counted.at(-1)?.["total"]).toBe(totals?.requests);
    for (const [at, one] of counted.entries())
      expect(one["total"]).toBeGreaterThanOrEqual(counted[at - 1]?.["total"] ?? 0);
  };

  const added = (points: readonly Point[]): number =>
    points
      .filter(
        ({ figure, kind, scope }) =>
          kind === "interval" && scope === "run" && figure === "requests",
      )
      .reduce((sum, { values }) => sum + (values["increment"] ?? 0), 0);

  it(
    "reports a job live and at its end, equal to its summary",
    async () => {
      const { client, job } = await submitted("of one leader", 3);
      const { status, summary } = await job.completion();
      await client.close();
      const points = await allPointsOf(job.id);
      expect(status).toBe("COMPLETED");
      expectTold(points, job.id, summary as RunSummary);
      expect(added(points)).toBe(summary?.totals?.requests);
      const text = await until(
        async () => collector.traces.find((one) => one.includes(job.id)) ?? null,
      );
      const { spans } = (JSON.parse(text) as Trace).resourceSpans[0].scopeSpans[0];
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
      expect(spans.map(({ name }) => name)).toEqual([
        ...["run", "queue", "dispatch", "begin", "run in datacenters", "merge"],
        "workflow quickstart",
      ]);
    },
    MS_MAX,
  );

  it(
    "continues when the leader of a job is killed, adds nothing twice, and reports its end once",
    async () => {
      const { client, job } = await submitted("of two leaders", 1_200);
      await until(async () => ((await pointsOf(job.id)).length > 0 ? true : null));
      const { leader } = await job.status();
      process.kill(cluster.node(leader ?? "").pid, "SIGKILL");
      await until(async () => {
        const now = (await job.status()).leader;
        return now !== null && now !== leader ? true : null;
      });
      const reported = (await pointsOf(job.id)).length;
      await until(async () => ((await pointsOf(job.id)).length > reported ? true : null));
      await job.cancel();
      const { summary } = await job.completion();
      const points = await allPointsOf(job.id);
      expect((await job.status()).leader).not.toBe(leader);
      await client.close();
      expectTold(points, job.id, summary as RunSummary);
      // Requests measured while no gate led are in the totals, but in no increment.
      expect(added(points)).toBeLessThanOrEqual(summary?.totals?.requests ?? 0);
    },
    MS_MAX,
  );
});
