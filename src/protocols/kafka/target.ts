/**
 * \n A Kafka cluster, as users write it.
 *
 *   const events = kafka.target("kafka://broker.test:9092");
 *   await step("order", events.produce("orders", { id: 7 }, { key: "ada" }));
 *   const order = await step("receive", events.receive("orders"));      // order.value.latencyMs
 */

import type { Duration } from "../../core/base/duration.ts";
import { credentialsOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type {
  EncodedMessage,
  KafkaCommand,
  KafkaMessage,
  Placement,
  ReceivedMessage,
} from "./command.ts";
import { KafkaDriver, type KafkaLogin, kafkaDriver, type Sasl } from "./connection.ts";
import { CALLS_MAX, MESSAGES_MAX } from "./limits.ts";

export interface KafkaOptions extends TargetOptions {
  /** User to log in as by SASL; defaults to the user in the address, else no login. */
  readonly user?: string;
  readonly password?: string;
  /** SASL mechanism; "plain" by default. */
  readonly mechanism?: Sasl["mechanism"];
  /** Name in the cluster's logs and quotas; "hyperscale" by default. */
  readonly clientId?: string;
  /** Retries of errors that the cluster calls temporary, such as NOT_LEADER; 0 by default. */
  readonly retries?: number;
}

export interface ProduceOptions extends KafkaMessage {
  /** Replicas that must acknowledge before the call finishes: all in sync (default), their leader, or none. */
  readonly acks?: keyof typeof ACKS;
  readonly compression?: "gzip";
}

export interface BatchMessage extends KafkaMessage {
  readonly value: Payload;
}

export interface SubscribeOptions {
  /** Members of a group share its messages; each virtual user has its own group by default. */
  readonly group?: string;
  /**
   * "end": messages produced from now on; "beginning": all available messages. A known group resumes where it stopped.
   */
  readonly from?: "end" | "beginning";
  /** "user" keeps the subscription for further iterations; otherwise it ends with its iteration. */
  readonly keep?: "user" | "iteration";
}

export type KafkaResponse<Value = unknown> = TargetResult<Value>;
export type KafkaCall<Value> = DescribedCall<KafkaCommand, Value>;

const ACKS = { all: -1, leader: 1, none: 0 } as const;
const MECHANISMS: readonly unknown[] = ["plain", "scram-sha-256", "scram-sha-512"];

export const KAFKA: TargetProtocol = {
  name: "kafka",
  schemes: { kafka: { port: 9092, secure: false }, kafkas: { port: 9093, secure: true } },
  optionNames: ["user", "password", "mechanism", "clientId", "retries"],
  callsPerConnectionMax: CALLS_MAX,
  load: () => kafkaDriver.load(),
};

export class KafkaTarget {
  readonly #target: Target<KafkaCommand>;

  constructor(address: string, options: KafkaOptions = {}) {
    this.#target = new Target(
      KAFKA,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const { origin, url } = this.#target;
    const driver = new KafkaDriver(loginOf(url, origin.secure, options));
  }

  /** Produces one message; `value` is its partition and offset. */
  produce(
    topic: string,
    payload: Payload,
    options: ProduceOptions = {},
  ): KafkaCall<readonly Placement[]> {
    checkNames("produce", options, ["key", "headers", "partition", "acks", "compression"]);
    return this.#produce(topic, [encoded(payload, options)], options);
  }

  /** Produces several messages in one call. */
  produceBatch(
    topic: string,
    messages: readonly BatchMessage[],
    options: Pick<ProduceOptions, "acks" | "compression"> = {},
  ): KafkaCall<readonly Placement[]> {
    checkNames("produceBatch", options, ["acks", "compression"]);
    if (messages.length === 0 || messages.length > MESSAGES_MAX)
      throw new RangeError(`a batch has 1 to ${MESSAGES_MAX} messages`);
    const all = messages.map((message) => encoded(message.value, message));
    return this.#produce(topic, all, options);
  }

  #produce(
    topic: string,
    messages: readonly EncodedMessage[],
    { acks = "all", compression }: ProduceOptions,
  ): KafkaCall<readonly Placement[]> {
    if (!Object.hasOwn(ACKS, acks)) throw new TypeError('acks is "all", "leader" or "none"');
    return new DescribedCall(this.#target, {
      command: {
        kind: "produce",
        topic: checkTopic(topic),
        messages,
        acks: ACKS[acks],
        gzip: compression === "gzip",
      },
      title: `produce ${topic}`,
      decode: (value) => value as readonly Placement[],
    });
  }

  /** Messages are received by `receive` of the same topic. Joining a group takes seconds. */
  subscribe(topic: string, options: SubscribeOptions = {}): KafkaCall<null> {
    checkNames("subscribe", options, ["group", "from", "keep"]);
    const { from = "end", group = "", keep = "iteration" } = options;
    return new DescribedCall(this.#target, {
      command: {
        kind: "subscribe",
        topic: checkTopic(topic),
        group,
        fromBeginning: from === "beginning",
        kept: keep === "user",
      },
      title: `subscribe ${topic}`,
      decode: () => null,
    });
  }

  /** Receives a message of a subscription: the first unread one, or the next to arrive. */
  receive(
    topic: string,
    options: { readonly timeout?: Duration } = {},
  ): KafkaCall<ReceivedMessage> {
    checkNames("receive", options, ["timeout"]);
    return new DescribedCall(this.#target, {
      command: { kind: "receive", topic: checkTopic(topic) },
      title: `receive ${topic}`,
      timeout: options.timeout,
      decode: (value) => value as ReceivedMessage,
    });
  }

  /** Requests the list of brokers; `value` is their number. */
  ping(): KafkaCall<string> {
    return new DescribedCall(this.#target, {
      command: { kind: "ping" },
      title: "describe cluster",
      decode: (brokers) => `${Number(brokers)} broker${brokers === 1 ? "" : "s"}`,
    });
  }
}

function encoded(payload: Payload, { headers = {}, key, partition }: KafkaMessage): EncodedMessage {
  return {
    key: key === undefined || typeof key === "string" ? (key ?? null) : Buffer.from(key),
    value: Buffer.from(payloadBytes(payload)),
    headers: { ...headers },
    ...(partition === undefined ? {} : { partition }),
  };
}

function checkTopic(topic: unknown): string {
  if (typeof topic === "string" && /^[A-Za-z0-9._-]{1,249}$/.test(topic)) return topic;
  throw new TypeError(
    `${JSON.stringify(topic)} is not a topic: 1 to 249 letters, digits, ".", "_", "-"`,
  );
}

function loginOf(url: URL, tls: boolean, options: KafkaOptions): KafkaLogin {
  const { clientId = "hyperscale", mechanism = "plain", retries = 0 } = options;
  if (!MECHANISMS.includes(mechanism))
    throw new TypeError(`mechanism is one of ${MECHANISMS.join(", ")}`);
  if (!Number.isInteger(retries) || retries < 0 || retries > 100)
    throw new RangeError("retries is a whole number from 0 to 100");
  const { password, user } = credentialsOf(url, options);
  const sasl = user === "" ? null : { mechanism, username: user, password };
  return { clientId, tls, sasl, retries };
}
