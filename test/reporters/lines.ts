/** Daemons that read lines: StatsD itself, netdata's and Graphite's. Over TCP, where nothing gets lost. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { asked, type Case, checkSteps, eventually, freshRun, type Step, send } from "./measure.ts";
import {
  freePort,
  npmFolder,
  output,
  own,
  type Program,
  programOf,
  withFolder,
} from "./servers.ts";

/** Where labels are part of the name. */
function pathOf(run: RunSummary, { step, workflow }: Step, figure: string): string {
  const parts = ["hyperscale", "summary", run.title ?? "", "step", workflow, step.name, figure];
  return parts.map((part) => part.replace(/[^A-Za-z0-9_-]+/g, "_")).join(".");
}

const statsd: Case = {
  ...{ reporter: "statsd", server: "statsd 0.9" },
  run: () =>
    withFolder(async (server) => {
      const home = join(npmFolder("statsd", "0.9.0"), "node_modules/statsd");
      const [port, manage] = [await freePort(), await freePort()];
      const config = {
        ...{ servers: [{ server: "./servers/tcp", address: "127.0.0.1", port }] },
        ...{ mgmt_port: manage, mgmt_address: "127.0.0.1", backends: [], flushInterval: 3_600_000 },
      };
      writeFileSync(join(server.folder, "config.js"), JSON.stringify(config));
      await server.start(
        own(process.execPath),
        [join(home, "stats.js"), join(server.folder, "config.js")],
        manage,
      );
      const run = freshRun();
      await send(`statsd=tcp://127.0.0.1:${port}`, run);
      await eventually(async () => {
        const gauges = await managed(manage, "gauges");
        const value = (name: string): number =>
          Number(new RegExp(`'${name.replaceAll(".", "\\.")}': ([\\d.e-]+)`).exec(gauges)?.[1]);
        await checkSteps(run, async (one) => ({
          requests: value(pathOf(run, one, "requests")),
          p99: value(pathOf(run, one, "latency_ms_p99")),
        }));
      });
      return "requests and p99 of every step, from its management port";
    }),
};

/** One command of statsd's management port; it says END when it is done. */
function managed(port: number, command: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  return new Promise<string>((resolve, reject) => {
    let text = "";
    socket.on("error", reject);
    socket.on("data", (data) => {
      text += String(data);
      if (/^END$/m.test(text)) resolve(text);
    });
    socket.write(`${command}\n`);
  }).finally(() => socket.destroy());
}

interface NetdataMetrics {
  readonly [chart: string]: {
    readonly dimensions: Readonly<Record<string, { readonly value: number }>>;
  };
}

const netdata: Case = {
  ...{ reporter: "netdata", server: "netdata" },
  run: () =>
    withFolder(async (server) => {
      const program = programOf("netdata", "netdata-core");
      const [web, port] = [await freePort(), await freePort()];
      for (const name of ["cache", "lib", "log", "plugins", "conf"])
        mkdirSync(join(server.folder, name));
      const config = `
[global]
  run as user = root
[directories]
  config = ${server.folder}/conf
  stock config = ${server.folder}/conf
  cache = ${server.folder}/cache
  lib = ${server.folder}/lib
  log = ${server.folder}/log
  plugins = ${server.folder}/plugins
  web = ${server.folder}/conf
[db]
  mode = ram
  retention = 60
[ml]
  enabled = no
[health]
  enabled = no
[plugins]
  proc = no
  cgroups = no
  tc = no
  idlejitter = no
  timex = no
  diskspace = no
  slabinfo = no
  statsd = yes
[web]
  bind to = 127.0.0.1:${web}
[statsd]
  bind to = tcp:127.0.0.1:${port}
  max private charts hard limit = 100000
  decimal detail = 1000
`;
      writeFileSync(join(server.folder, "netdata.conf"), config);
      const base = `http://127.0.0.1:${web}`;
      await server.start(program, ["-D", "-c", "netdata.conf"], `${base}/api/v1/info`);
      const run = freshRun();
      await send(`netdata=tcp://127.0.0.1:${port}`, run);
      await eventually(async () => {
        const url = `${base}/api/v1/allmetrics?format=json`;
        const metrics = (await asked(url)) as NetdataMetrics;
        const value = (name: string): number => {
          const chart = metrics[`statsd_${name}_gauge`];
          return Object.values(chart?.dimensions ?? {})[0]?.value ?? Number.NaN;
        };
        // Gauges keep three digits.
        await checkSteps(run, async (one) => ({
          requests: value(pathOf(run, one, "requests")),
          p99: rounded(value(pathOf(run, one, "latency_ms_p99")), one),
        }));
      });
      return "requests and p99 of every step, from its API";
    }),
};

function rounded(value: number, { step }: Step): number {
  const { p99 } = step.latencyMs;
  return Math.abs(value - p99) <= 0.001 ? p99 : value;
}

const graphite: Case = {
  ...{ reporter: "graphite", server: "carbon" },
  run: () =>
    withFolder(async (server) => {
      const carbon = python(programOf("carbon-cache", "graphite-carbon"));
      const [port, pickle, query] = [await freePort(), await freePort(), await freePort()];
      const config = `
[cache]
STORAGE_DIR = ${server.folder}
CONF_DIR = ${server.folder}
LOG_DIR = ${server.folder}
PID_DIR = ${server.folder}
LOCAL_DATA_DIR = ${server.folder}/whisper
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = ${port}
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = ${pickle}
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = ${query}
ENABLE_LOGROTATION = False
`;
      writeFileSync(join(server.folder, "carbon.conf"), config);
      const schemas = "[all]\npattern = .*\nretentions = 1s:1h\n";
      writeFileSync(join(server.folder, "storage-schemas.conf"), schemas);
      const place = [`--config=${join(server.folder, "carbon.conf")}`, "--nodaemon"];
      await server.start(carbon, [...place, "start"], port);
      const run = freshRun();
      await send(`graphite=tcp://127.0.0.1:${port}`, run);
      const fetch = python(programOf("whisper-fetch", "graphite-carbon"));
      const value = (name: string): number => {
        const file = `${join(server.folder, "whisper", ...name.split("."))}.wsp`;
        if (!existsSync(file)) return Number.NaN;
        const from = Math.floor(Date.parse(run.startedAt) / 1_000) - 1;
        const text = output(fetch, "--drop=nulls", `--from=${from}`, file);
        return Number(text.trim().split("\n").at(-1)?.split("\t")[1]);
      };
      await eventually(async () => {
        // whisper-fetch shows six decimals.
        await checkSteps(run, async (one) => ({
          requests: value(pathOf(run, one, "requests")),
          p99: rounded(value(pathOf(run, one, "latency_ms_p99")), one),
        }));
      });
      return "requests and p99 of every step, by whisper-fetch";
    }),
};

/** Programs of Python find their modules beside them. */
function python({ environment, path }: Program): Program {
  const modules = join(path, "../../lib/python3/dist-packages");
  return existsSync(modules)
    ? { path, environment: { ...environment, PYTHONPATH: modules } }
    : { path, environment };
}

export const LINES: readonly Case[] = [statsd, netdata, graphite];
