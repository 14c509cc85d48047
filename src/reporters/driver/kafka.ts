/** Kafka: a message per point, by the driver `kafkajs`. */

import type { SASLOptions } from "kafkajs";
import { loadDriver } from "../../protocols/target/driver.ts";
import { definePush } from "../definition.ts";
import { type PointObject, pointBatches } from "../encoders/point-json.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";

const POINTS_MAX = 500;

export const kafka = definePush({
  name: "kafka",
  about: "Apache Kafka: a message per point by run, with the package kafkajs",
  target: "127.0.0.1:9092",
  settings: {
    topic: { kind: "text", about: "the topic", default: "hyperscale-points" },
    user: { kind: "text", about: "who logs in (SASL)", optional: true },
    password: { kind: "secret", about: "the user's password", optional: true },
    mechanism: {
      kind: "choice",
      about: "how to log in",
      choices: ["plain", "scram-sha-256", "scram-sha-512"],
      default: "scram-sha-512",
    },
    tls: { kind: "switch", about: "encrypt", default: "false" },
  },
  evidence: "emulator",
  testedWith: "librdkafka's mock cluster, read by kcat 1.7",
  transport: ({ settings: { mechanism, password, tls, topic, user }, target }) => {
    const brokers = target.split(/[ ;]+/).filter((one) => one !== "");
    if (brokers.length === 0) throw new ReporterError("report kafka: write kafka=HOST:PORT");
    const sasl =
      user === undefined
        ? undefined
        : ({ mechanism, username: user, password: password ?? "" } as SASLOptions);
    return new SessionTransport({
      prepare: async () => void (await driver()),
      open: (signal) => opened({ brokers, tls, sasl, topic }, signal),
      isRefusal,
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

type Driver = typeof import("kafkajs");

async function driver(): Promise<Driver> {
  const loaded = await loadDriver<{ readonly default: Driver }>("kafkajs", "report kafka");
  return loaded.default;
}

interface Cluster {
  readonly brokers: string[];
  readonly tls: boolean;
  readonly sasl: SASLOptions | undefined;
  readonly topic: string;
}

async function opened(
  { brokers, sasl, tls, topic }: Cluster,
  signal: AbortSignal,
): Promise<Session> {
  const { CompressionTypes, Kafka, logLevel } = await driver();
  const cluster = new Kafka({
    ...{ clientId: "hyperscale", brokers, ssl: tls, logLevel: logLevel.NOTHING },
    ...(sasl === undefined ? {} : { sasl }),
    ...{ connectionTimeout: REQUEST_MS_MAX, requestTimeout: REQUEST_MS_MAX },
    // The pipeline retries.
    retry: { retries: 0 },
  });
  const producer = cluster.producer({ allowAutoTopicCreation: true });
  const destroy = (): void => void producer.disconnect().catch(() => {});
  signal.addEventListener("abort", destroy, { once: true });
  await producer.connect();
  return {
    write: async (body) => {
      const points = JSON.parse(body.toString("utf8")) as readonly PointObject[];
      const messages = points.map((point) => ({
        key: point.labels["run_id"] ?? point.labels["run"] ?? null,
        value: JSON.stringify(point),
        timestamp: String(Date.parse(point.at)),
      }));
      await producer.send({ topic, messages, compression: CompressionTypes.GZIP });
    },
    close: () => producer.disconnect(),
    destroy,
  };
}

/** Errors of the cluster that it does not itself mark as retriable. */
function isRefusal(error: unknown): boolean {
  const { cause = error } = error as { readonly cause?: unknown };
  const { name, retriable } = cause as { readonly name?: string; readonly retriable?: boolean };
  const isAnswer = name === "KafkaJSProtocolError" || name === "KafkaJSSASLAuthenticationError";
  return isAnswer && retriable !== true;
}
