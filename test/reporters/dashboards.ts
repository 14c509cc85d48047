/**
 * The dashboards of Grafana: each of their queries is put to a real Prometheus that has a run, or scrapes a
 * real cluster, and must find something. Needs the built command line.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LiveRun } from "../../src/core/load/results/live.ts";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../../src/reporters/registry.ts";
import { LocalCluster } from "../processes/cluster/local-cluster.ts";
import { asked, type Case, eventually } from "./measure.ts";
import { freePort, type Program, type RealServer, withServer } from "./servers.ts";

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly type: string; readonly query: unknown }[];
  };
}

function dashboard(name: string): Dashboard {
  const file = new URL(`../../dashboards/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as Dashboard;
}

/** As Grafana fills them in, with everything chosen. */
function filledIn(query: string): string {
  return query.replaceAll("$__rate_interval", "1m").replaceAll(/\$(run_id|step|instance)/g, ".*");
}

interface Found {
  readonly data: { readonly result: readonly unknown[] };
}

/** Every query of every panel, and the series that variables are chosen from. */
async function checkQueries(base: string, { panels, templating }: Dashboard): Promise<number> {
  const ask = async (query: string): Promise<number> => {
    const url = `${base}/api/v1/query?query=${encodeURIComponent(filledIn(query))}`;
    return ((await asked(url)) as Found).data.result.length;
  };
  let queries = 0;
  for (const { targets, title } of panels)
    for (const { expr } of targets) {
      if ((await ask(expr)) === 0) throw new Error(`"${title}" finds nothing by ${expr}`);
      queries++;
    }
  for (const { query, type } of templating.list) {
    if (type !== "query") continue;
    const { query: text } = query as { readonly query: string };
    const [, series = ""] = /^label_values\((.*), \w+\)$/.exec(text) ?? [];
    if ((await ask(series)) === 0) throw new Error(`a variable finds nothing by ${text}`);
    queries++;
  }
  return queries;
}

async function startPrometheus(
  program: Program,
  server: RealServer,
  scraped: readonly string[],
): Promise<string> {
  const base = `http://127.0.0.1:${await freePort()}`;
  const jobs = [
    {
      ...{ job_name: "hyperscale", scrape_interval: "1s" },
      static_configs: [{ targets: scraped }],
    },
  ];
  // JSON is YAML, too.
  const config = { scrape_configs: scraped.length === 0 ? [] : jobs };
  writeFileSync(join(server.folder, "prometheus.yml"), JSON.stringify(config));
  const args = [
    ...["--config.file=prometheus.yml", "--storage.tsdb.path=data"],
    `--web.listen-address=${base.slice("http://".length)}`,
    ...["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"],
  ];
  await server.start(program, args, `${base}/-/ready`);
  return base;
}

/** Three frames a second apart: rates need more than one. */
async function sendLive(report: string): Promise<void> {
  const reporting = await openReporting([report], { env: {}, onProblem: () => {} });
  const startedAt = new Date().toISOString();
  const at = (seconds: number) => ({
    ...syntheticRun({ seed: "dashboards", seconds, rate: 0.5 }),
    startedAt,
  });
  await reporting.start(at(1));
  for (const seconds of [1, 2, 3]) {
    const summary = at(seconds);
    const workflows = summary.workflows.map(({ name }) => ({
      ...{ name, activeVus: 10, targetPerSecond: null },
    })) as unknown as LiveRun["workflows"];
    const live: LiveRun = {
      ...{ phase: "running", scale: 1, elapsedSeconds: seconds, totalSeconds: 3, summary },
      ...{ workflows, ratePerSecond: 0, failedPerSecond: 0 },
    };
    reporting.progress(live, seconds * 1_000);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  await reporting.finish(at(4));
}

export const DASHBOARDS: readonly Case[] = [
  {
    ...{ reporter: "dashboards/run.json", server: "prometheus" },
    run: withServer("prometheus", "prometheus", async (program, server) => {
      const base = await startPrometheus(program, server, []);
      await sendLive(`prometheus=${base},every=1s`);
      let queries = 0;
      await eventually(async () => {
        queries = await checkQueries(base, dashboard("run"));
      });
      return `all ${queries} queries find something`;
    }),
  },
  {
    ...{ reporter: "dashboards/cluster.json", server: "prometheus" },
    run: withServer("prometheus", "prometheus", async (program, server) => {
      const cluster = await LocalCluster.start("--gates", "1", "--workers", "1");
      try {
        const nodes = cluster.ready.processes.flatMap(({ api }) => (api === null ? [] : [api]));
        const base = await startPrometheus(program, server, nodes);
        let queries = 0;
        await eventually(async () => {
          queries = await checkQueries(base, dashboard("cluster"));
        });
        return `all ${queries} queries find something of ${nodes.length} nodes`;
      } finally {
        await cluster.stop();
      }
    }),
  },
];
