/**
 * Kafka client of one virtual user, through the driver `kafkajs`: a producer, and a consumer for each subscribed topic.
 * The loss of any producer socket closes the connection.
 */

import net from "node:net";
import tls from "node:tls";
import type { Admin, Consumer, Kafka, KafkaConfig, Producer, SASLOptions } from "kafkajs";
import { OptionalPackage } from "../target/driver.ts";
import type {
  Driver,
  DriverAddress,
  DriverEvents,
  Opening,
  Refusal,
  Traffic,
} from "../target/driver-connection.ts";
import { DriverSockets } from "../target/driver-sockets.ts";
import { Inbox } from "../target/inbox.ts";
import type { KafkaCommand, Placement, ReceivedMessage } from "./command.ts";
import { FETCH_WAIT_MS_MAX, SUBSCRIPTIONS_MAX } from "./limits.ts";

export interface KafkaLogin {
  readonly clientId: string;
  readonly tls: boolean;
  readonly sasl: Sasl | null;
  /** Retries by the driver of errors that the cluster calls temporary. */
  readonly retries: number;
}

export interface Sasl {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512";
  readonly username: string;
  readonly password: string;
}

export const kafkaDriver = new OptionalPackage<typeof import("kafkajs")>("kafkajs", "Kafka");

/** Calls have their own deadlines. */
const NEVER_MS = 2 ** 31 - 1;

type Subscribe = Extract<KafkaCommand, { kind: "subscribe" }>;
type Produce = Extract<KafkaCommand, { kind: "produce" }>;

interface Subscription {
  readonly consumer: Consumer;
  readonly kept: boolean;
}

interface Client {
  readonly sockets: DriverSockets;
  readonly producer: Producer;
  /** Client whose sockets are opened and closed as needed. */
  readonly others: Kafka;
  readonly inbox: Inbox<ReceivedMessage>;
  readonly subscriptions: Map<string, Subscription>;
  lost(error: unknown): void;
}

export class KafkaDriver implements Driver<Client, KafkaCommand> {
  readonly #login: KafkaLogin;
  #groups = 0;

  constructor(login: KafkaLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<Client> {
    const sockets = new DriverSockets();
    const { Kafka, Partitioners } = kafkaDriver.module;
    const main = new Kafka(this.#configuration(address, sockets, events));
    const { retries } = this.#login;
    const producer = main.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      retry: { retries },
    });
    const client: Client = {
      sockets,
      producer,
      others: new Kafka(this.#configuration(address, sockets)),
      inbox: new Inbox(),
      subscriptions: new Map(),
      lost: events.lost,
    };
    return { client, ready: producer.connect() };
  }

  #configuration(
    address: DriverAddress,
    sockets: DriverSockets,
    events?: DriverEvents,
  ): KafkaConfig {
    const { clientId, retries, sasl, tls: secure } = this.#login;
    const { host, port } = address;
    return {
      clientId,
      brokers: [`${host.includes(":") ? `[${host}]` : host}:${port}`],
      connectionTimeout: NEVER_MS,
      authenticationTimeout: NEVER_MS,
      enforceRequestTimeout: false,
      retry: { retries },
      logLevel: kafkaDriver.module.logLevel.NOTHING,
      ...(sasl === null ? {} : { sasl: sasl as SASLOptions }),
      socketFactory: (endpoint) => {
        const where = { host: endpoint.host, port: endpoint.port, noDelay: true };
        const socket = secure
          ? tls.connect({ ...where, ...address.tls() }, endpoint.onConnect)
          : net.connect(where, endpoint.onConnect);
        return sockets.add(socket, events);
      },
    };
  }

  perform(client: Client, command: KafkaCommand, call: object): Promise<unknown> {
    switch (command.kind) {
      case "produce":
        return produced(client.producer, command);
      case "subscribe":
        return this.#subscribe(client, command);
      case "receive":
        return received(client, command.topic, call);
      case "ping":
        return withAdmin(client, async (admin) => (await admin.describeCluster()).brokers.length);
    }
  }

  /** From the end: delivers nothing that exists when the call begins, and everything produced afterwards. */
  async #subscribe(client: Client, { fromBeginning, group, kept, topic }: Subscribe) {
    const { inbox, others, subscriptions } = client;
    if (subscriptions.has(topic)) return null;
    if (subscriptions.size >= SUBSCRIPTIONS_MAX)
      throw new Error(`more than ${SUBSCRIPTIONS_MAX} subscriptions`);
    const groupId =
      group === "" ? `${this.#login.clientId}-${process.pid}-${++this.#groups}` : group;
    const consumer = others.consumer({
      groupId,
      maxWaitTimeInMs: FETCH_WAIT_MS_MAX,
      retry: { retries: this.#login.retries, restartOnFailure: async () => false },
    });
    subscriptions.set(topic, { consumer, kept });
    const ends = group === "" && !fromBeginning ? await endsOf(client, topic) : [];
    const next = new Map(ends.map(({ offset, partition }) => [partition, BigInt(offset)]));
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning });
    const crashed = new Promise<never>((_, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => {
        reject(payload.error);
        client.lost(payload.error);
      });
    });
    const run = consumer.run({
      autoCommit: group !== "",
      eachMessage: async ({ message, partition }) => {
        const offset = BigInt(message.offset);
        // Skip messages fetched before the seek took effect; they are delivered again.
        if (offset < (next.get(partition) ?? 0n)) return;
        next.set(partition, offset + 1n);
        inbox.arrived(messageOf(topic, partition, message), 0, 0);
      },
    });
    await Promise.race([run, crashed]);
    for (const { offset, partition } of ends) consumer.seek({ topic, partition, offset });
    return null;
  }

  requests(command: KafkaCommand): number {
    return command.kind === "receive" ? 0 : 1;
  }

  /** Extracts the cluster's error name; the driver wraps it. */
  refusal(error: unknown): Refusal | null {
    for (const cause of causesOf(error)) {
      const { message, type } = cause as { readonly type?: unknown; readonly message?: string };
      if (typeof type === "string") return { code: type, text: message ?? type };
      if (cause.name === "KafkaJSSASLAuthenticationError")
        return { code: "SASL_AUTHENTICATION_FAILED", text: cause.message };
    }
    return null;
  }

  /** Exceptions of the driver's decoder are not its own error types. */
  isMalformed(error: unknown): boolean {
    return causesOf(error).some(
      (cause) => cause instanceof RangeError || cause instanceof TypeError,
    );
  }

  traffic({ sockets }: Client): Traffic {
    return sockets;
  }

  forget({ inbox }: Client, call: object): boolean {
    return inbox.forget(call);
  }

  reset({ inbox, subscriptions }: Client): void {
    for (const [topic, { consumer, kept }] of subscriptions) {
      if (kept) continue;
      subscriptions.delete(topic);
      inbox.drop((message) => message.topic === topic);
      consumer.disconnect().catch(() => undefined);
    }
  }

  close({ producer, sockets, subscriptions }: Client): void {
    for (const client of [producer, ...[...subscriptions.values()].map((each) => each.consumer)])
      client.disconnect().catch(() => undefined);
    sockets.destroy();
  }
}

async function produced(
  producer: Producer,
  { acks, gzip, messages, topic }: Produce,
): Promise<readonly Placement[]> {
  const { CompressionTypes } = kafkaDriver.module;
  const placed = await producer.send({
    topic,
    acks,
    messages: [...messages],
    ...(gzip ? { compression: CompressionTypes.GZIP } : {}),
  });
  // The driver sends nothing and reports no error when a partition has no leader.
  if (placed.length === 0 && acks !== 0)
    throw Object.assign(new Error(`${topic} has no such partition`), { type: NO_PARTITION });
  return placed.map(({ baseOffset = "-1", partition }) => ({ partition, offset: baseOffset }));
}

const NO_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION";

function received(client: Client, topic: string, call: object): Promise<ReceivedMessage> {
  if (client.subscriptions.has(topic))
    return client.inbox.next(call, (message) => message.topic === topic);
  const text = `not subscribed to ${topic} in this iteration: perform subscribe first`;
  return Promise.reject(Object.assign(new Error(text), { type: "NOT_SUBSCRIBED" }));
}

interface End {
  readonly partition: number;
  readonly offset: string;
}

function endsOf(client: Client, topic: string): Promise<readonly End[]> {
  return withAdmin(client, (admin) => admin.fetchTopicOffsets(topic));
}

async function withAdmin<Value>(
  { others }: Client,
  use: (admin: Admin) => Promise<Value>,
): Promise<Value> {
  const admin = others.admin();
  try {
    await admin.connect();
    return await use(admin);
  } finally {
    admin.disconnect().catch(() => undefined);
  }
}

type Fetched = Parameters<
  NonNullable<NonNullable<Parameters<Consumer["run"]>[0]>["eachMessage"]>
>[0]["message"];

function messageOf(topic: string, partition: number, message: Fetched): ReceivedMessage {
  const producedAtMs = Number(message.timestamp);
  return {
    ...{ topic, partition, offset: message.offset, key: message.key, producedAtMs },
    data: message.value ?? Buffer.alloc(0),
    headers: new Map(Object.entries(message.headers ?? {}).map(([name, v]) => [name, String(v)])),
    latencyMs: Date.now() - producedAtMs,
  };
}

const CAUSES_MAX = 8;

/** The error and its causes, outermost first. */
function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  let next = error;
  while (next instanceof Error && causes.length < CAUSES_MAX) {
    causes.push(next);
    next = next.cause;
  }
  return causes;
}
