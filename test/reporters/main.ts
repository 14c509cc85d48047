/**
 * Reporters against real servers: what was sent is asked back through the server's own query interface and
 * compared with the summary it came from.
 *
 *   npm run test:reporters            all
 *   npm run test:reporters -- influx  those whose name has this in it
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { RunSummary, StepSummary } from "../../src/core/run/results/model.ts";
import { syntheticRun } from "../../src/core/run/results/testing/synthetic-run.ts";
import { openReporting } from "../../src/reporters/registry.ts";
import { NO_POSTGRES, TestPostgres } from "../processes/queue/server.ts";
import { fetched, freePort, RealServer } from "./servers.ts";

/** As if it had just ended: databases of time series refuse what is old. */
function freshRun(): RunSummary {
  const run = syntheticRun({ seed: "reporters", seconds: 10, rate: 0.5 });
  return { ...run, startedAt: new Date(Date.now() - 10_000).toISOString() };
}

interface Step {
  readonly workflow: string;
  readonly step: StepSummary;
}

const stepsOf = ({ workflows }: RunSummary): Step[] =>
  workflows.flatMap(({ name, steps }) => steps.map((step) => ({ workflow: name, step })));

/** Sends it, and fails when something was dropped. */
async function send(report: string, run: RunSummary): Promise<void> {
  const problems: string[] = [];
  const onProblem = (name: string, problem: string): void =>
    void problems.push(`${name}: ${problem}`);
  const reporting = await openReporting([report], { env: process.env, onProblem });
  await reporting.start(run);
  const { reports = [] } = await reporting.finish(run);
  const [outcome] = reports;
  if (outcome === undefined || outcome.dropped > 0 || outcome.sent === 0)
    throw new Error(`${JSON.stringify(outcome)} ${problems.join("; ")}`);
}

function same(what: string, got: number | undefined, wanted: number, share = 1e-9): void {
  const off = Math.abs((got ?? Number.NaN) - wanted);
  if (!(off <= Math.abs(wanted) * share + 1e-12))
    throw new Error(`${what}: the server says ${got}, the summary ${wanted}`);
}

async function asked(url: string): Promise<unknown> {
  const answer = await fetch(url);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

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

/** Until all of what was sent can be asked for. */
async function eventually(check: () => Promise<void>): Promise<void> {
  const until = Date.now() + 30_000;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
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

async function throughPostgres(): Promise<string> {
  const server = await TestPostgres.start();
  try {
    process.env["REPORTERS_PGURL"] = server.url;
    const run = freshRun();
    await send("postgres=env:REPORTERS_PGURL", run);
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      for (const { step, workflow } of stepsOf(run)) {
        const { rows } = await client.query<{ requests: number; p99: number }>(
          `SELECT max(value) FILTER (WHERE figure = 'requests' AND name = 'total') AS requests,
                  max(value) FILTER (WHERE figure = 'latency_ms' AND name = 'p99') AS p99
           FROM hyperscale_points WHERE kind = 'summary' AND workflow = $1 AND step = $2`,
          [workflow, step.name],
        );
        same(`requests of ${step.name}`, rows[0]?.requests, step.requests);
        same(`p99 of ${step.name}`, rows[0]?.p99, step.latencyMs.p99);
      }
    } finally {
      await client.end();
    }
    return "requests and p99 of every step, by SQL";
  } finally {
    await server.stop();
  }
}

interface Case {
  readonly reporter: string;
  readonly server: string;
  readonly package: string;
  readonly program: string;
  readonly run: (program: string, server: RealServer) => Promise<string>;
}

const CASES: readonly Case[] = [
  {
    ...{ reporter: "prometheus", server: "prometheus", package: "prometheus" },
    program: "usr/bin/prometheus",
    run: async (program, server) => {
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
    },
  },
  {
    ...{ reporter: "pushgateway", server: "pushgateway", package: "prometheus-pushgateway" },
    program: "usr/bin/prometheus-pushgateway",
    run: async (program, server) => {
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
    },
  },
  {
    ...{ reporter: "influxdb", server: "influxdb 1", package: "influxdb" },
    program: "usr/bin/influxd",
    run: async (program, server) => {
      const base = await startInflux(program, server, await freePort());
      const run = freshRun();
      await send(`influxdb=${base},database=load`, run);
      await checkInflux(base, run);
      return "requests and p99 of every step, by InfluxQL";
    },
  },
  {
    ...{ reporter: "telegraf", server: "influxdb 1, UDP", package: "influxdb" },
    program: "usr/bin/influxd",
    run: async (program, server) => {
      const udp = await freePort();
      const base = await startInflux(program, server, udp);
      const run = freshRun();
      await send(`telegraf=udp://127.0.0.1:${udp}`, run);
      await eventually(() => checkInflux(base, run));
      return "requests and p99 of every step, by InfluxQL";
    },
  },
  ...(["influxdb", "graphite", "prometheus"] as const).map(
    (reporter): Case => ({
      ...{ reporter, server: "victoria-metrics", package: "victoria-metrics" },
      program: "usr/bin/victoria-metrics",
      run: (program, server) => throughVictoria(reporter, program, server),
    }),
  ),
];

async function startInflux(program: string, server: RealServer, udp: number): Promise<string> {
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
  program: string,
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

async function main(wanted: string): Promise<number> {
  let failed = 0;
  for (const one of CASES.filter(({ reporter }) => reporter.includes(wanted))) {
    const program = fetched(one.package, one.program);
    const title = `${one.reporter} → ${one.server}`;
    if (program === undefined) {
      console.log(`skipped ${title}: Debian's package ${one.package} cannot be fetched here`);
      continue;
    }
    const server = new RealServer();
    try {
      console.log(`passed  ${title}: ${await one.run(program, server)}`);
    } catch (error) {
      failed++;
      console.log(`FAILED  ${title}: ${(error as Error).message}`);
    } finally {
      await server.stop();
    }
  }
  if ("postgres".includes(wanted)) failed += await postgresCase();
  return failed === 0 ? 0 : 1;
}

/** Its binaries come with a development dependency. */
async function postgresCase(): Promise<number> {
  if (!TestPostgres.available()) {
    console.log(`skipped postgres: ${NO_POSTGRES}`);
    return 0;
  }
  try {
    console.log(`passed  postgres → PostgreSQL: ${await throughPostgres()}`);
    return 0;
  } catch (error) {
    console.log(`FAILED  postgres → PostgreSQL: ${(error as Error).message}`);
    return 1;
  }
}

process.exitCode = await main(process.argv[2] ?? "");
