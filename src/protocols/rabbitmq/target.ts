/**
 * \n A RabbitMQ server, as users write it.
 *
 *   const broker = rabbitmq.target("amqp://shop:secret@broker.test/shop");
 *   await step("order", broker.send("orders", { id: 7 }));
 *   const order = await step("next", broker.receive("orders"));          // after consume("orders")
 */

import type { Duration } from "../../core/base/duration.ts";
import { credentialsOf, pathOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type {
  ExchangeType,
  MessageOptions,
  QueueOptions,
  QueueState,
  RabbitmqCommand,
  ReceivedMessage,
} from "./command.ts";
import { RabbitmqDriver, type RabbitmqLogin, rabbitmqDriver } from "./connection.ts";
import { CALLS_MAX, PREFETCH_MAX } from "./limits.ts";

export interface RabbitmqOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address, else guest. */
  readonly user?: string;
  readonly password?: string;
  /** Virtual host; defaults to the path of the address, else "/". */
  readonly vhost?: string;
}

export interface PublishOptions extends MessageOptions {
  /** False finishes the call when the message was written, without waiting for the server's acknowledgement. */
  readonly confirm?: boolean;
}

export interface ConsumeOptions {
  /** Messages that the server sends ahead of their `receive`; 100 by default. */
  readonly prefetch?: number;
  /** "user" keeps the consumer for further iterations; otherwise it ends with its iteration. */
  readonly keep?: "user" | "iteration";
}

export type RabbitmqResponse<Value = unknown> = TargetResult<Value>;
export type RabbitmqCall<Value> = DescribedCall<RabbitmqCommand, Value>;

const MESSAGE_OPTION_NAMES = [
  ...["headers", "contentType", "correlationId", "replyTo", "expirationMs", "persistent"],
  ...["mandatory", "confirm"],
];
const EXCHANGE_TYPES: readonly unknown[] = ["direct", "fanout", "topic", "headers"];

export const RABBITMQ: TargetProtocol = {
  name: "rabbitmq",
  schemes: { amqp: { port: 5672, secure: false }, amqps: { port: 5671, secure: true } },
  optionNames: ["user", "password", "vhost"],
  callsPerConnectionMax: CALLS_MAX,
  load: () => rabbitmqDriver.load(),
};

export class RabbitmqTarget {
  readonly #target: Target<RabbitmqCommand>;

  constructor(address: string, options: RabbitmqOptions = {}) {
    this.#target = new Target(
      RABBITMQ,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const { origin, url } = this.#target;
    const driver = new RabbitmqDriver(loginOf(url, origin.secure, options));
  }

  /** Publishes to an exchange; finishes when the server has acknowledged, unless `confirm` is false. */
  publish(
    exchange: string,
    routingKey: string,
    payload: Payload,
    options: PublishOptions = {},
  ): RabbitmqCall<null> {
    checkNames("publish", options, MESSAGE_OPTION_NAMES);
    const { confirm = true, expirationMs, ...message } = options;
    const expires = expirationMs === undefined ? {} : { expiration: `${expirationMs}` };
    const command = {
      kind: "publish",
      exchange: nameOf(exchange),
      routingKey: nameOf(routingKey),
      content: Buffer.from(payloadBytes(payload)),
      properties: { ...message, ...expires },
      confirm,
    } as const;
    const to = exchange === "" ? routingKey : exchange;
    return this.#call(`publish ${to}`, command, () => null);
  }

  /** Sends to a queue through the default exchange. */
  send(queue: string, payload: Payload, options: PublishOptions = {}): RabbitmqCall<null> {
    return this.publish("", queueOf(queue), payload, options);
  }

  /** Takes and acknowledges one message; null when the queue is empty. */
  get(queue: string): RabbitmqCall<ReceivedMessage | null> {
    const command = { kind: "get", queue: queueOf(queue) } as const;
    return this.#call(`get ${queue}`, command, (value) => value as ReceivedMessage | null);
  }

  /** Messages are received by `receive` of the same queue. */
  consume(queue: string, options: ConsumeOptions = {}): RabbitmqCall<null> {
    checkNames("consume", options, ["prefetch", "keep"]);
    const { keep = "iteration", prefetch = 100 } = options;
    if (!Number.isInteger(prefetch) || prefetch < 1 || prefetch > PREFETCH_MAX)
      throw new RangeError(`prefetch is a whole number from 1 to ${PREFETCH_MAX}`);
    const kept = keep === "user";
    const command = { kind: "consume", queue: queueOf(queue), prefetch, kept } as const;
    return this.#call(`consume ${queue}`, command, () => null);
  }

  /** Receives and acknowledges the next message of a consumed queue. */
  receive(
    queue: string,
    options: { readonly timeout?: Duration } = {},
  ): RabbitmqCall<ReceivedMessage> {
    checkNames("receive", options, ["timeout"]);
    return this.#call(
      `receive ${queue}`,
      { kind: "receive", queue: queueOf(queue) },
      (value) => value as ReceivedMessage,
      options.timeout,
    );
  }

  /** Creates a queue if it does not exist; `value` has its message and consumer counts. */
  declareQueue(queue: string, options: QueueOptions = {}): RabbitmqCall<QueueState> {
    checkNames("declareQueue", options, ["durable", "autoDelete", "exclusive", "arguments"]);
    const command = { kind: "queue", queue: queueOf(queue), options } as const;
    return this.#call(`declare ${queue}`, command, (value) => value as QueueState);
  }

  declareExchange(
    exchange: string,
    type: ExchangeType = "direct",
    options: { readonly durable?: boolean } = {},
  ): RabbitmqCall<null> {
    checkNames("declareExchange", options, ["durable"]);
    if (!EXCHANGE_TYPES.includes(type))
      throw new TypeError(`an exchange is one of ${EXCHANGE_TYPES.join(", ")}`);
    const { durable = true } = options;
    const command = { kind: "exchange", exchange: nameOf(exchange), type, durable } as const;
    return this.#call(`declare ${exchange}`, command, () => null);
  }

  bind(queue: string, exchange: string, routingKey = ""): RabbitmqCall<null> {
    const command = {
      kind: "bind",
      queue: queueOf(queue),
      exchange: nameOf(exchange),
      routingKey: nameOf(routingKey),
    } as const;
    return this.#call(`bind ${queue}`, command, () => null);
  }

  /** Deletes all messages of a queue and returns their number. */
  purge(queue: string): RabbitmqCall<number> {
    return this.#call(`purge ${queue}`, { kind: "purge", queue: queueOf(queue) }, Number);
  }

  deleteQueue(queue: string): RabbitmqCall<number> {
    return this.#call(`delete ${queue}`, { kind: "delete", queue: queueOf(queue) }, Number);
  }

  /** Opens a channel and closes it. */
  ping(): RabbitmqCall<string> {
    return this.#call("open channel", { kind: "ping" }, () => "answers");
  }

  #call<Value>(
    title: string,
    command: RabbitmqCommand,
    decode: (value: unknown) => Value,
    timeout?: Duration,
  ): RabbitmqCall<Value> {
    return new DescribedCall(this.#target, { command, title, timeout, decode });
  }
}

/** Limit of AMQP's short strings. */
const NAME_BYTES_MAX = 255;

function nameOf(name: unknown): string {
  if (typeof name === "string" && Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  throw new TypeError(`${JSON.stringify(name)} is not a name: at most ${NAME_BYTES_MAX} bytes`);
}

function queueOf(queue: unknown): string {
  if (queue !== "") return nameOf(queue);
  throw new TypeError("a queue has a name");
}

function loginOf(url: URL, tls: boolean, options: RabbitmqOptions): RabbitmqLogin {
  const { password, user } = credentialsOf(url, options);
  const vhost = pathOf(url, options.vhost);
  const login = user === "" ? { user: "guest", password: "guest" } : { user, password };
  return { ...login, vhost: vhost === "" ? "/" : vhost, tls };
}
