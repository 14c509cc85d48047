/** What is measured, and beside what. */

import dgram from "node:dgram";
import amqp from "amqplib";
import { Client as FtpClient } from "basic-ftp";
import { Kafka, logLevel } from "kafkajs";
import { MongoClient } from "mongodb";
import mysql from "mysql2/promise";
import pg from "pg";
import ssh2 from "ssh2";
import { encodeQuery } from "../../src/protocols/dns/message.ts";
import { DnsTarget } from "../../src/protocols/dns/target.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "../../src/protocols/dns/testing/server.ts";
import { FtpTarget } from "../../src/protocols/ftp/target.ts";
import { PYFTPDLIB, pyftpdlib, startFtp } from "../../src/protocols/ftp/testing/server.ts";
import { KafkaTarget } from "../../src/protocols/kafka/target.ts";
import { KCAT, kcatProgram, startKafka, TOPIC } from "../../src/protocols/kafka/testing/server.ts";
import { MongodbTarget } from "../../src/protocols/mongodb/target.ts";
import { MysqlTarget } from "../../src/protocols/mysql/target.ts";
import { MARIADB, mariadbProgram, startMysql } from "../../src/protocols/mysql/testing/server.ts";
import { PostgresTarget } from "../../src/protocols/postgres/target.ts";
import { startPostgres } from "../../src/protocols/postgres/testing/server.ts";
import type { PreparedCall } from "../../src/protocols/protocol.ts";
import { RabbitmqTarget } from "../../src/protocols/rabbitmq/target.ts";
import {
  QUEUE,
  RABBITMQ_SERVER,
  rabbitmqProgram,
  startRabbitmq,
} from "../../src/protocols/rabbitmq/testing/server.ts";
import { RedisTarget } from "../../src/protocols/redis/target.ts";
import {
  REDIS_SERVER,
  redisProgram,
  startRedis,
} from "../../src/protocols/redis/testing/server.ts";
import { SshTarget } from "../../src/protocols/ssh/target.ts";
import { ASYNCSSH, asyncssh, startSsh } from "../../src/protocols/ssh/testing/server.ts";
import { absent } from "../../src/protocols/testing/real-server.ts";
import { runner, TestSession } from "../../src/protocols/testing/session.ts";
import { NO_POSTGRES, TestPostgres } from "../../test/processes/queue/server.ts";
import { grpcPeer, grpcTarget } from "./grpc-peer.ts";
import { redisBenchmark } from "./redis-peer.ts";
import { startApart } from "./server-process.ts";

export interface Side {
  run(operations: number): Promise<void>;
  /** Of a peer that is a process of its own: what its last run took. */
  cpuMicros?(): number;
}

interface Pair {
  readonly ours: Side;
  readonly peer: Side;
  stop(): Promise<void>;
}

export interface BenchCase {
  readonly name: string;
  readonly beside: string;
  /** Ours may cost so many times the peer's. */
  readonly must: number;
  readonly operations: number;
  /** Why it cannot be measured here; null where it can. */
  readonly absent: string | null;
  start(): Promise<Pair>;
}

type Operation = () => Promise<unknown>;

const CONNECTIONS = 8;

/** So many loops side by side, each with a connection of its own. */
async function lanes(open: () => Promise<Operation>, count = CONNECTIONS): Promise<Side> {
  const operations = await Promise.all(Array.from({ length: count }, open));
  return {
    run: async (total) => {
      const each = Math.ceil(total / count);
      await Promise.all(
        operations.map(async (operation) => {
          for (let i = 0; i < each; i++) await operation();
        }),
      );
    },
  };
}

/** Our side: one virtual user for each connection. */
function ours(call: PreparedCall, count = CONNECTIONS): Promise<Side> {
  return lanes(async () => {
    const run = await runner(call, new TestSession());
    return async () => {
      const { record, result } = await run();
      if (record.errorKind !== null) throw new Error(`${record.errorKind}: ${result?.error}`);
    };
  }, count);
}

/** Of bare clients, when their server is stopped at the end. */
const ignored = (): void => undefined;

const unless = (present: boolean, reason: string): string | null => (present ? null : reason);

export const cases: readonly BenchCase[] = [
  {
    name: "redis GET, 64 connections",
    beside: "redis-benchmark",
    must: 1.6,
    operations: 40_000,
    absent: unless(redisProgram !== null, absent(REDIS_SERVER)),
    start: async () => {
      const server = await startRedis();
      const target = new RedisTarget(`redis://127.0.0.1:${server.port}`);
      const peer = redisBenchmark(server.port, 64);
      return { ours: await ours(target.get("price"), 64), peer, stop: () => server.stop() };
    },
  },
  {
    name: "dns query over UDP",
    beside: "a bare dgram loop",
    must: 1.5,
    operations: 20_000,
    absent: unless(dnsmasqProgram !== null, absent(DNSMASQ)),
    start: async () => {
      const server = await startDnsmasq();
      const target = new DnsTarget(`dns://127.0.0.1:${server.port}`);
      const peer = await lanes(() => bareQuery(server.port));
      return { ours: await ours(target.query("fixed.test")), peer, stop: () => server.stop() };
    },
  },
  {
    name: "grpc unary",
    beside: "@grpc/grpc-js",
    must: 0.4,
    operations: 2_000,
    absent: null,
    start: async () => {
      const server = await startApart("grpc");
      const call = grpcTarget(server.port).unary("shop.Catalog/GetItem", { id: 7 });
      const peer = await lanes(() => grpcPeer(server.port));
      return { ours: await ours(call), peer, stop: server.stop };
    },
  },
  {
    name: "postgres select",
    beside: "pg",
    must: 1.15,
    operations: 2_000,
    absent: unless(TestPostgres.available(), NO_POSTGRES),
    start: async () => {
      const server = await startPostgres();
      const call = new PostgresTarget(server.url).query("select 1 n");
      const peer = await lanes(async () => {
        const client = new pg.Client(server.url);
        client.on("error", ignored);
        await client.connect();
        return () => client.query("select 1 n");
      });
      return { ours: await ours(call), peer, stop: () => server.stop() };
    },
  },
  {
    name: "mysql select",
    beside: "mysql2",
    must: 1.15,
    operations: 2_000,
    absent: unless(mariadbProgram !== null, absent(MARIADB)),
    start: async () => {
      const server = await startMysql();
      const call = new MysqlTarget(server.url).query("select 1 n");
      const peer = await lanes(async () => {
        const client = await mysql.createConnection(server.url);
        client.on("error", ignored);
        return () => client.query("select 1 n");
      });
      return { ours: await ours(call), peer, stop: () => server.stop() };
    },
  },
  {
    name: "mongodb ping",
    beside: "mongodb",
    must: 1.15,
    operations: 2_000,
    absent: null,
    start: async () => {
      const server = await startApart("mongodb");
      const call = new MongodbTarget(`mongodb://127.0.0.1:${server.port}/shop`).ping();
      const peer = await lanes(async () => {
        const url = `mongodb://127.0.0.1:${server.port}/?directConnection=true&maxPoolSize=1`;
        const database = (await new MongoClient(url).connect()).db("shop");
        return () => database.command({ ping: 1 });
      });
      return { ours: await ours(call), peer, stop: server.stop };
    },
  },
  {
    name: "kafka produce",
    beside: "kafkajs",
    must: 1.15,
    operations: 1_000,
    absent: unless(kcatProgram !== null, absent(KCAT)),
    start: async () => {
      const server = await startKafka();
      const brokers = [`127.0.0.1:${server.port}`];
      const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
      const peer = await lanes(async () => {
        const producer = kafka.producer();
        await producer.connect();
        return () => producer.send({ topic: TOPIC, messages: [{ value: "hello" }] });
      });
      const call = new KafkaTarget(server.url).produce(TOPIC, "hello");
      return { ours: await ours(call), peer, stop: () => server.stop() };
    },
  },
  {
    name: "rabbitmq publish with confirm",
    beside: "amqplib",
    must: 1.15,
    operations: 2_000,
    absent: unless(rabbitmqProgram !== null, absent(RABBITMQ_SERVER)),
    start: async () => {
      const server = await startRabbitmq();
      const content = Buffer.from("hello");
      const peer = await lanes(async () => {
        const model = await amqp.connect(server.url);
        model.on("error", ignored);
        const channel = await model.createConfirmChannel();
        return () => new Promise((resolve) => channel.sendToQueue(QUEUE, content, {}, resolve));
      });
      const call = new RabbitmqTarget(server.url).send(QUEUE, "hello");
      return { ours: await ours(call), peer, stop: () => server.stop() };
    },
  },
  {
    name: "ftp SIZE",
    beside: "basic-ftp",
    must: 1.15,
    operations: 1_000,
    absent: unless(pyftpdlib !== null, absent(PYFTPDLIB)),
    start: async () => {
      const server = await startFtp();
      const peer = await lanes(async () => {
        const client = new FtpClient();
        const { port } = server;
        await client.access({ host: "127.0.0.1", port, user: "shop", password: "secret" });
        return () => client.size("hello");
      });
      const call = new FtpTarget(server.url).size("hello");
      return { ours: await ours(call), peer, stop: () => server.stop() };
    },
  },
  {
    name: "ssh exec",
    beside: "ssh2",
    must: 1.15,
    operations: 300,
    absent: unless(asyncssh !== null, absent(ASYNCSSH)),
    start: async () => {
      const server = await startSsh();
      const peer = await lanes(() => bareExec(server.port), 4);
      const call = new SshTarget(server.url).exec("echo hello");
      return { ours: await ours(call, 4), peer, stop: () => server.stop() };
    },
  },
];

async function bareQuery(port: number): Promise<Operation> {
  const query = Buffer.from(encodeQuery("fixed.test", "A", true));
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(port, "127.0.0.1", resolve));
  return () =>
    new Promise((resolve) => {
      socket.once("message", resolve);
      socket.send(query);
    });
}

async function bareExec(port: number): Promise<Operation> {
  const client = new ssh2.Client();
  client.on("error", ignored);
  const ready = new Promise<void>((resolve) => client.once("ready", () => resolve()));
  client.connect({ host: "127.0.0.1", port, username: "shop", password: "secret" });
  await ready;
  return () =>
    new Promise((resolve, reject) => {
      client.exec("echo hello", (error, stream) => {
        if (error !== undefined) reject(error);
        else {
          const parts: Buffer[] = [];
          stream.on("data", (bytes: Buffer) => parts.push(bytes));
          stream.stderr.resume();
          stream.on("close", () => resolve(Buffer.concat(parts)));
          stream.end();
        }
      });
    });
}
