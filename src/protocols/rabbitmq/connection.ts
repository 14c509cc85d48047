/**
 * RabbitMQ connection of one virtual user through the driver `amqplib`: one channel with confirms, opened again when
 * the server closes it, which is how it refuses commands.
 */

import { channel as diagnostics } from "node:diagnostics_channel";
import net from "node:net";
import type { ChannelModel, ConfirmChannel, ConsumeMessage, GetMessage } from "amqplib";
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
import type { QueueState, RabbitmqCommand, ReceivedMessage } from "./command.ts";
import { CONSUMERS_MAX, FRAME_BYTES } from "./limits.ts";

export interface RabbitmqLogin {
  readonly user: string;
  readonly password: string;
  readonly vhost: string;
  readonly tls: boolean;
}

export const rabbitmqDriver = new OptionalPackage<typeof import("amqplib")>("amqplib", "RabbitMQ");

type Publish = Extract<RabbitmqCommand, { kind: "publish" }>;
type Consume = Extract<RabbitmqCommand, { kind: "consume" }>;

interface Consumer {
  readonly tag: string;
  readonly kept: boolean;
}

/** A message that waits to be received and is then acknowledged. */
interface Delivered {
  readonly data: Uint8Array;
  readonly queue: string;
  readonly delivery: ConsumeMessage;
}

class Client {
  readonly sockets = new DriverSockets();
  readonly inbox = new Inbox<Delivered>();
  readonly consumers = new Map<string, Consumer>();
  readonly lost: (error: unknown) => void;
  model: ChannelModel | null = null;
  channel: Promise<ConfirmChannel> | null = null;
  /** The open channel; null once it is closed. */
  openChannel: ConfirmChannel | null = null;
  /** Reason why the server closed the last channel. */
  refusedBy: unknown = null;
  /** Messages that the server returned, by their number. */
  readonly returned = new Set<string>();
  published = 0;

  constructor(lost: (error: unknown) => void) {
    this.lost = lost;
  }
}

export class RabbitmqDriver implements Driver<Client, RabbitmqCommand> {
  readonly #login: RabbitmqLogin;

  constructor(login: RabbitmqLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<Client> {
    const client = new Client(events.lost);
    return { client, ready: this.#ready(client, address, events) };
  }

  async #ready(client: Client, address: DriverAddress, events: DriverEvents): Promise<void> {
    const { password, tls, user: username, vhost } = this.#login;
    const { host: hostname, port } = address;
    const endpoint = {
      ...{ hostname, port, username, password, vhost },
      protocol: tls ? "amqps" : "amqp",
      frameMax: FRAME_BYTES,
      heartbeat: 0,
    };
    const connect = (options: object): Promise<ChannelModel> =>
      rabbitmqDriver.module.connect(endpoint, { noDelay: true, ...options });
    // TLS uses our own socket; otherwise the driver opens one, which is captured.
    const opening = tls
      ? connect({
          ...address.tls(),
          socket: client.sockets.add(net.connect(port, hostname), events),
        })
      : caught(
          () => connect({}),
          (socket) => client.sockets.add(socket, events),
        );
    const model = await opening;
    client.model = model;
    model.on("error", (error) => client.lost(error));
    await channelOf(client);
  }

  perform(client: Client, command: RabbitmqCommand, call: object): Promise<unknown> {
    const { openChannel } = client;
    // Fast path of nearly all load: one promise instead of five.
    return command.kind === "publish" && openChannel !== null
      ? published(client, openChannel, command)
      : this.#perform(client, command, call);
  }

  async #perform(client: Client, command: RabbitmqCommand, call: object): Promise<unknown> {
    if (command.kind === "receive") return received(client, command.queue, call);
    if (command.kind === "ping") return ping(client);
    const channel = await channelOf(client);
    try {
      return await onChannel(client, channel, command);
    } catch (error) {
      throw reasonOf(client, error);
    }
  }

  requests({ kind }: RabbitmqCommand): number {
    return kind === "receive" ? 0 : 1;
  }

  refusal(error: unknown): Refusal | null {
    const code = codeOf(error);
    if (code === null || ENDS_CONNECTION.has(code)) return null;
    return { code, text: error instanceof Error ? error.message : code };
  }

  /** The driver reports it, or throws while decoding. */
  isMalformed(error: unknown): boolean {
    if (!(error instanceof Error)) return false;
    return (
      error instanceof RangeError || error instanceof TypeError || MALFORMED.test(error.message)
    );
  }

  traffic({ sockets }: Client): Traffic {
    return sockets;
  }

  forget({ inbox }: Client, call: object): boolean {
    return inbox.forget(call);
  }

  reset(client: Client): void {
    const { consumers, inbox } = client;
    for (const [queue, { kept, tag }] of consumers) {
      if (kept) continue;
      consumers.delete(queue);
      void client.channel?.then(async (channel) => {
        await channel.cancel(tag);
        // Requeue messages that were not received, for other consumers.
        inbox.drop((message) => {
          const ended = message.queue === queue;
          if (ended) channel.nack(message.delivery);
          return ended;
        });
      }, client.lost);
    }
  }

  close({ model, sockets }: Client): void {
    model?.removeAllListeners();
    model?.on("error", () => undefined);
    sockets.destroy();
  }
}

/** Calls `open` and passes the socket that it creates to `use`. */
function caught<Value>(open: () => Value, use: (socket: net.Socket) => void): Value {
  const sockets = diagnostics("net.client.socket");
  const onSocket = (message: unknown): void =>
    use((message as { readonly socket: net.Socket }).socket);
  sockets.subscribe(onSocket);
  try {
    return open();
  } finally {
    sockets.unsubscribe(onSocket);
  }
}

/** Returns the open channel, or a new one to replace a channel that the server has closed. */
function channelOf(client: Client): Promise<ConfirmChannel> {
  client.channel ??= opened(client);
  return client.channel;
}

async function opened(client: Client): Promise<ConfirmChannel> {
  if (client.model === null) throw new Error("the connection is not open");
  const channel = await client.model.createConfirmChannel();
  client.refusedBy = null;
  client.openChannel = channel;
  channel.on("error", (error) => {
    client.refusedBy = error;
  });
  channel.on("close", () => {
    client.channel = null;
    client.openChannel = null;
    // The consumers of a channel are lost with it.
    if (client.consumers.size > 0) client.lost(client.refusedBy ?? new Error("channel closed"));
  });
  channel.on("return", ({ properties }) => client.returned.add(String(properties.messageId)));
  return channel;
}

function onChannel(
  client: Client,
  channel: ConfirmChannel,
  command: Exclude<RabbitmqCommand, { kind: "receive" | "ping" }>,
): Promise<unknown> {
  switch (command.kind) {
    case "publish":
      return published(client, channel, command);
    case "get":
      return got(channel, command.queue);
    case "consume":
      return consumed(client, channel, command);
    case "queue":
      return channel
        .assertQueue(command.queue, command.options)
        .then(({ consumerCount, messageCount }) => stateOf(messageCount, consumerCount));
    case "exchange":
      return channel.assertExchange(command.exchange, command.type, { durable: command.durable });
    case "bind":
      return channel.bindQueue(command.queue, command.exchange, command.routingKey);
    case "purge":
      return channel.purgeQueue(command.queue).then(({ messageCount }) => messageCount);
    case "delete":
      return channel.deleteQueue(command.queue).then(({ messageCount }) => messageCount);
  }
}

const stateOf = (messages: number, consumers: number): QueueState => ({ messages, consumers });

/** Resolves on the server's acknowledgement; an unroutable message is returned before that. */
function published(
  client: Client,
  channel: ConfirmChannel,
  { confirm, content, exchange, properties, routingKey }: Publish,
): Promise<null> {
  // Only mandatory messages are returned.
  const messageId = properties.mandatory === true ? `${++client.published}` : "";
  const numbered = messageId === "" ? properties : { ...properties, messageId };
  return new Promise((resolve, reject) => {
    try {
      channel.publish(exchange, routingKey, content, numbered, (error: unknown) => {
        if (error !== null && error !== undefined) reject(reasonOf(client, closedOr(error)));
        else if (messageId !== "" && client.returned.delete(messageId))
          reject(refusedWith("NO_ROUTE", exchange));
        else resolve(null);
      });
    } catch (error) {
      // The channel has started to close.
      reject(reasonOf(client, error));
    }
    if (!confirm) resolve(null);
  });
}

/** Commands fail without a reason when the server closed the channel; returns the reason of the close. */
function reasonOf({ refusedBy }: Client, error: unknown): unknown {
  return codeOf(error) === null ? (refusedBy ?? error) : error;
}

/** A message that the server rejected; a closed channel has its own reason. */
function closedOr(error: unknown): unknown {
  const text = error instanceof Error ? error.message : String(error);
  return /nacked/.test(text) ? refusedWith("NACK", "the server refused the message") : error;
}

function refusedWith(code: string, text: string): Error {
  return Object.assign(new Error(`${code}: ${text}`), { refusal: code });
}

async function got(channel: ConfirmChannel, queue: string): Promise<ReceivedMessage | null> {
  const message = await channel.get(queue);
  if (message === false) return null;
  channel.ack(message);
  return messageOf(queue, message);
}

async function consumed(
  client: Client,
  channel: ConfirmChannel,
  { kept, prefetch, queue }: Consume,
): Promise<null> {
  const { consumers, inbox } = client;
  if (consumers.has(queue)) return null;
  if (consumers.size >= CONSUMERS_MAX) throw new Error(`more than ${CONSUMERS_MAX} consumers`);
  await channel.prefetch(prefetch);
  const { consumerTag: tag } = await channel.consume(queue, (delivery) => {
    if (delivery === null) client.lost(new Error(`the server ended the consumer of ${queue}`));
    else inbox.arrived({ data: delivery.content, queue, delivery }, 0, 0);
  });
  consumers.set(queue, { tag, kept });
  return null;
}

async function received(client: Client, queue: string, call: object): Promise<ReceivedMessage> {
  if (!client.consumers.has(queue)) {
    const text = `no consumer of ${queue} in this iteration: perform consume first`;
    throw refusedWith("NOT_CONSUMING", text);
  }
  const { delivery } = await client.inbox.next(call, (message) => message.queue === queue);
  const channel = await channelOf(client);
  channel.ack(delivery);
  return messageOf(queue, delivery);
}

function messageOf(
  queue: string,
  { content, fields, properties }: GetMessage | ConsumeMessage,
): ReceivedMessage {
  const { exchange, redelivered, routingKey } = fields;
  return {
    ...{ queue, exchange, routingKey, redelivered, data: content },
    headers: new Map(Object.entries(properties.headers ?? {})),
    correlationId: String(properties.correlationId ?? ""),
    replyTo: String(properties.replyTo ?? ""),
  };
}

async function ping({ model }: Client): Promise<string> {
  const channel = await model?.createChannel();
  await channel?.close();
  return "answers";
}

/** AMQP 0-9-1 names of reply codes. */
const NAMES: Readonly<Record<number, string>> = {
  ...{ 311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS", 320: "CONNECTION_FORCED" },
  ...{ 402: "INVALID_PATH", 403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED" },
  ...{
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
  },
  ...{ 504: "CHANNEL_ERROR", 505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR", 530: "NOT_ALLOWED" },
  ...{ 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR" },
};

/** The server is stopping, or an operator closed the connection. */
const ENDS_CONNECTION = new Set(["CONNECTION_FORCED"]);

const MALFORMED = /[Ff]rame|[Uu]nknown (method|class)|malformed/;

/** Null for errors that are not from a server. */
function codeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, refusal } = error as Error & { readonly code?: unknown; readonly refusal?: string };
  if (refusal !== undefined) return refusal;
  // For errors before the connection is accepted, the driver has the code in its text, or not at all.
  if (/ConnectionOpenOk; got <ConnectionClose/.test(error.message)) return "NOT_ALLOWED";
  const number =
    typeof code === "number" ? code : Number(/by server: (\d{3})\b/.exec(error.message)?.[1]);
  return NAMES[number] ?? null;
}
