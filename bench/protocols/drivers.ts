/** Protocols that use a driver, each beside a bare loop over the same driver. */

import amqp from "amqplib";
import { Client as FtpClient } from "basic-ftp";
import { Kafka, logLevel } from "kafkajs";
import { MongoClient } from "mongodb";
import mysql from "mysql2/promise";
import pg from "pg";
import ssh2 from "ssh2";
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
import { SshTarget } from "../../src/protocols/ssh/target.ts";
import { ASYNCSSH, asyncssh, startSsh } from "../../src/protocols/ssh/testing/server.ts";
import { absent } from "../../src/protocols/testing/real-server.ts";
import { NO_POSTGRES, TestPostgres } from "../../test/processes/queue/server.ts";
import {
  CONNECTIONS,
  type Comparison,
  comparison,
  ignored,
  lanes,
  type Operation,
  ours,
  type Side,
  unless,
} from "./comparison.ts";
import { startApart } from "./server-process.ts";

/** Limit relative to the driver alone. */
const MUST = 1.15;

export const drivers = [
  besideDriver({
    name: "postgres select",
    operations: 20_000,
    absent: unless(TestPostgres.available(), NO_POSTGRES),
    server: startPostgres,
    call: ({ url }) => new PostgresTarget(url).query("select 1 n"),
    driver: "pg",
    bare: ({ url }) => pgSelect(url),
  }),
  besideDriver({
    name: "mysql select",
    operations: 20_000,
    absent: unless(mariadbProgram !== null, absent(MARIADB)),
    server: startMysql,
    call: ({ url }) => new MysqlTarget(url).query("select 1 n"),
    driver: "mysql2",
    bare: ({ url }) => mysqlSelect(url),
  }),
  besideDriver({
    name: "mongodb ping",
    operations: 20_000,
    absent: null,
    server: () => startApart("mongodb"),
    call: ({ port }) => new MongodbTarget(`mongodb://127.0.0.1:${port}/shop`).ping(),
    driver: "mongodb",
    bare: ({ port }) => mongodbPing(port),
  }),
  besideDriver({
    name: "kafka produce",
    operations: 5_000,
    absent: unless(kcatProgram !== null, absent(KCAT)),
    server: startKafka,
    call: ({ url }) => new KafkaTarget(url).produce(TOPIC, "hello"),
    driver: "kafkajs",
    bare: ({ port }) => kafkaProduce(port),
  }),
  besideDriver({
    name: "rabbitmq publish with confirm",
    operations: 20_000,
    absent: unless(rabbitmqProgram !== null, absent(RABBITMQ_SERVER)),
    server: startRabbitmq,
    call: ({ url }) => new RabbitmqTarget(url).send(QUEUE, "hello"),
    driver: "amqplib",
    bare: ({ url }) => amqpSend(url),
  }),
  besideDriver({
    name: "ftp SIZE",
    operations: 5_000,
    absent: unless(pyftpdlib !== null, absent(PYFTPDLIB)),
    server: startFtp,
    call: ({ url }) => new FtpTarget(url).size("hello"),
    driver: "basic-ftp",
    bare: ({ port }) => ftpSize(port),
  }),
  besideDriver({
    name: "ssh exec",
    operations: 300,
    absent: unless(asyncssh !== null, absent(ASYNCSSH)),
    server: startSsh,
    connections: 4,
    call: ({ url }) => new SshTarget(url).exec("echo hello"),
    driver: "ssh2",
    bare: ({ port }) => sshExec(port),
  }),
];

interface DriverComparison<Server> extends Omit<Comparison, "peers" | "start"> {
  readonly connections?: number;
  readonly driver: string;
  server(): Promise<Server>;
  call(server: Server): PreparedCall;
  /** Opens a connection of the driver with the operation on it. */
  bare(server: Server): Promise<Operation>;
}

function besideDriver<Server extends { stop(): Promise<void> }>({
  bare,
  call,
  connections = CONNECTIONS,
  driver,
  ...described
}: DriverComparison<Server>): Comparison {
  const open = (server: Server): Promise<Side> => lanes(() => bare(server), connections);
  return comparison<Server>({
    ...described,
    ours: (server) => ours(call(server), { connections }),
    peers: [{ name: driver, must: MUST, absent: null, open }],
  });
}

async function pgSelect(url: string): Promise<Operation> {
  const client = new pg.Client(url);
  client.on("error", ignored);
  await client.connect();
  return () => client.query("select 1 n");
}

async function mysqlSelect(url: string): Promise<Operation> {
  const client = await mysql.createConnection(url);
  client.on("error", ignored);
  return () => client.query("select 1 n");
}

async function mongodbPing(port: number): Promise<Operation> {
  const url = `mongodb://127.0.0.1:${port}/?directConnection=true&maxPoolSize=1`;
  const database = (await new MongoClient(url).connect()).db("shop");
  return () => database.command({ ping: 1 });
}

async function kafkaProduce(port: number): Promise<Operation> {
  const kafka = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  return () => producer.send({ topic: TOPIC, messages: [{ value: "hello" }] });
}

async function amqpSend(url: string): Promise<Operation> {
  const content = Buffer.from("hello");
  const model = await amqp.connect(url);
  model.on("error", ignored);
  const channel = await model.createConfirmChannel();
  return () => new Promise((resolve) => channel.sendToQueue(QUEUE, content, {}, resolve));
}

async function ftpSize(port: number): Promise<Operation> {
  const client = new FtpClient();
  await client.access({ host: "127.0.0.1", port, user: "shop", password: "secret" });
  return () => client.size("hello");
}

async function sshExec(port: number): Promise<Operation> {
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
