/** Databases of time series: Prometheus and its gateway, InfluxDB, VictoriaMetrics. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { asked, type Case, eventually, freshRun, same, send, stepsOf } from "./measure.ts";
import { freePort, type Program, type RealServer, withServer } from "./servers.ts";

interface PromAnswer {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [number, string];
    }[];
  };
}

/** Values by step, at the end of the run. */
async function promValues(
  base: string,
  query: string,
  run: RunSummary,
): Promise<Map<string, number>> {
  const at = Math.ceil((Date.parse(run.startedAt) + run.durationSeconds * 1_000) / 1_000) + 1;
  const url = `${base}/api/v1/query?query=${encodeURIComponent(query)}&time=${at}`;
  const { data } = (await asked(url)) as PromAnswer;
  return new Map(data.result.map(({ metric, value }) => [metric["step"] ?? "", Number(value[1])]));
}

async function checkPrometheusSteps(base: string, run: RunSummary): Promise<void> {
  const requests = await promValues(base, "hyperscale_step_requests_total", run);
  const failed = await promValues(base, "hyperscale_step_failed_total", run);
  const p99 = 'hyperscale_summary_step_latency_seconds{quantile="0.99"}';
  const exact = await promValues(base, p99, run);
  for (const { step } of stepsOf(run)) {
    same(`requests of ${step.name}`, requests.get(step.name), step.requests);
    same(`failed of ${step.name}`, failed.get(step.name), step.failed);
    same(`p99 of ${step.name}`, exact.get(step.name), step.latencyMs.p99 / 1_000);
  }
}

/** Width of a bucket at scale 4; ours adds half a cell. */
const BUCKET = 2 ** (1 / 16) - 1 + 0.001;

async function checkNativeHistograms(base: string, run: RunSummary): Promise<void> {
  for (const [quantile, figure] of [
    [0.5, "p50"],
    [0.95, "p95"],
    [0.99, "p99"],
  ] as const) {
    const query = `histogram_quantile(${quantile}, hyperscale_step_latency_seconds)`;
    const found = await promValues(base, query, run);
    for (const { step } of stepsOf(run))
      same(
        `${figure} of ${step.name}`,
        found.get(step.name),
        step.latencyMs[figure] / 1_000,
        BUCKET,
      );
  }
  const counts = await promValues(base, "histogram_count(hyperscale_step_latency_seconds)", run);
  for (const { step } of stepsOf(run))
    same(`count of ${step.name}`, counts.get(step.name), step.latencyMs.count);
}

export const TIME_SERIES: readonly Case[] = [
  {
    ...{ reporter: "prometheus", server: "prometheus" },
    run: withServer("prometheus", "prometheus", async (program, server) => {
      const base = `http://127.0.0.1:${await freePort()}`;
      writeFileSync(join(server.folder, "prometheus.yml"), "scrape_configs: []\n");
      const args = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        `--web.listen-address=${base.slice("http://".length)}`,
        "--web.enable-remote-write-receiver",
        "--enable-feature=native-histograms",
      ];
      await server.start(program, args, `${base}/-/ready`);
      const run = freshRun();
      await send(`prometheus=${base}`, run);
      await checkPrometheusSteps(base, run);
      await checkNativeHistograms(base, run);
      return "requests, failed, exact p99; p50, p95, p99 of native histograms within a bucket";
    }),
  },
  {
    ...{ reporter: "pushgateway", server: "pushgateway" },
    run: withServer("prometheus-pushgateway", "prometheus-pushgateway", async (program, server) => {
      const address = `127.0.0.1:${await freePort()}`;
      await server.start(program, [`--web.listen-address=${address}`], `http://${address}/-/ready`);
      const run = freshRun();
      await send(`pushgateway=http://${address}`, run);
      const text = await (await fetch(`http://${address}/metrics`)).text();
      for (const { step } of stepsOf(run)) {
        const pattern = new RegExp(
          `^hyperscale_step_requests_total\\{[^}]*step="${step.name}"[^}]*\\} (\\S+)$`,
          "m",
        );
        same(`requests of ${step.name}`, Number(pattern.exec(text)?.[1]), step.requests);
      }
      return "requests of every step, from /metrics";
    }),
  },
  {
    ...{ reporter: "influxdb", server: "influxdb 1" },
    run: withServer("influxd", "influxdb", async (program, server) => {
      const base = await startInflux(program, server, await freePort());
      const run = freshRun();
      await send(`influxdb=${base},database=load`, run);
      await checkInflux(base, run);
      return "requests and p99 of every step, by InfluxQL";
    }),
  },
  {
    ...{ reporter: "telegraf", server: "influxdb 1, UDP" },
    run: withServer("influxd", "influxdb", async (program, server) => {
      const udp = await freePort();
      const base = await startInflux(program, server, udp);
      const run = freshRun();
      await send(`telegraf=udp://127.0.0.1:${udp}`, run);
      await eventually(() => checkInflux(base, run));
      return "requests and p99 of every step, by InfluxQL";
    }),
  },
  ...(["influxdb", "graphite", "prometheus"] as const).map(
    (reporter): Case => ({
      ...{ reporter, server: "victoria-metrics" },
      run: withServer("victoria-metrics", "victoria-metrics", (program, server) =>
        throughVictoria(reporter, program, server),
      ),
    }),
  ),
];

async function startInflux(program: Program, server: RealServer, udp: number): Promise<string> {
  const [http, rpc] = [await freePort(), await freePort()];
  const config = `
reporting-disabled = true
bind-address = "127.0.0.1:${rpc}"
[meta]
  dir = "meta"
[data]
  dir = "data"
  wal-dir = "wal"
[http]
  bind-address = "127.0.0.1:${http}"
[[udp]]
  enabled = true
  bind-address = "127.0.0.1:${udp}"
  database = "load"
  batch-timeout = "100ms"
`;
  writeFileSync(join(server.folder, "influxdb.conf"), config);
  const base = `http://127.0.0.1:${http}`;
  await server.start(program, ["-config", "influxdb.conf"], `${base}/ping`);
  await fetch(`${base}/query?q=${encodeURIComponent("CREATE DATABASE load")}`, { method: "POST" });
  return base;
}

interface InfluxAnswer {
  readonly results: readonly {
    readonly series?: readonly {
      readonly tags: Readonly<Record<string, string>>;
      readonly values: readonly (readonly unknown[])[];
    }[];
  }[];
}

async function checkInflux(base: string, run: RunSummary): Promise<void> {
  const query = `SELECT last(requests), last(latency_ms_p99) FROM hyperscale_summary_step GROUP BY step`;
  const url = `${base}/query?db=load&q=${encodeURIComponent(query)}`;
  const { results } = (await asked(url)) as InfluxAnswer;
  const rows = new Map(
    (results[0]?.series ?? []).map(({ tags, values }) => [tags["step"], values[0]]),
  );
  for (const { step } of stepsOf(run)) {
    const [, requests, p99] = rows.get(step.name) ?? [];
    same(`requests of ${step.name}`, Number(requests), step.requests);
    same(`p99 of ${step.name}`, Number(p99), step.latencyMs.p99);
  }
}

async function throughVictoria(
  reporter: "influxdb" | "graphite" | "prometheus",
  program: Program,
  server: RealServer,
): Promise<string> {
  const [http, graphite] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${http}`;
  const args = [
    `-httpListenAddr=127.0.0.1:${http}`,
    `-graphiteListenAddr=127.0.0.1:${graphite}`,
    "-storageDataPath=data",
    "-search.latencyOffset=0s",
  ];
  await server.start(program, args, `${base}/health`);
  const run = freshRun();
  const target = {
    influxdb: `influxdb=${base}`,
    graphite: `graphite=tcp://127.0.0.1:${graphite}`,
    prometheus: `prometheus=${base},histograms=quantiles`,
  }[reporter];
  await send(target, run);
  await eventually(async () => {
    await fetch(`${base}/internal/force_flush`);
    if (reporter === "prometheus") return checkPrometheusSteps(base, run);
    for (const { step, workflow } of stepsOf(run)) {
      const path = [run.title ?? "", "step", workflow, step.name, "requests"];
      const name = path.map((part) => part.replace(/[^A-Za-z0-9_-]+/g, "_")).join(".");
      const query =
        reporter === "influxdb"
          ? `hyperscale_summary_step_requests{step="${step.name}"}`
          : `{__name__="hyperscale.summary.${name}"}`;
      const [value] = (await promValues(base, query, run)).values();
      same(`requests of ${step.name}`, value, step.requests);
    }
  });
  return "requests of every step, by PromQL";
}
