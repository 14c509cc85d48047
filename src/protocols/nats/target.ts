/**
 * \n A NATS server, as users write it.
 *
 *   const bus = nats.target("nats://bus.test");
 *   await step("order", bus.publish("orders", { id: 7 }));
 *   const answer = await step("price", bus.request("prices", "tea"));     // answer.value.data
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type NatsCommand, NatsConnection, type NatsLogin } from "./connection.ts";
import { checkSubject, encodePublish, type NatsMessage, type NatsPublish } from "./wire.ts";

export interface NatsOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address (nats://user:password@host). */
  readonly username?: string;
  readonly password?: string;
  /** Token instead of a user; defaults to the address's user without a password. */
  readonly token?: string;
}

export interface PublishOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** False finishes the call when the bytes were handed to the network, without waiting for the server. */
  readonly confirm?: boolean;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeout?: Duration;
}

export interface SubscribeOptions {
  /** Queue group; each message is delivered to one of its subscribers. */
  readonly queue?: string;
  /** "user" keeps the subscription for further iterations; otherwise it ends with its iteration. */
  readonly keep?: "user" | "iteration";
}

export type NatsResponse<Value = unknown> = TargetResult<Value>;

export type NatsCall<Value> = DescribedCall<NatsCommand, Value>;

export const NATS: TargetProtocol = {
  name: "nats",
  // NATS begins in plain text, even when TLS follows.
  schemes: { nats: { port: 4222, secure: false }, tls: { port: 4222, secure: false } },
  optionNames: ["username", "password", "token"],
  callsPerConnectionMax: 1_024,
};

export class NatsTarget {
  readonly #target: Target<NatsCommand>;

  constructor(address: string, options: NatsOptions = {}) {
    this.#target = new Target(NATS, address, options, (host, now) => {
      return new NatsConnection(host, { login, tls }, now);
    });
    const login = loginOf(this.#target.url, options);
    const tls = this.#target.url.protocol === "tls:";
  }

  /** Finishes when the server has received the message, unless `confirm` is false. */
  publish(subject: string, payload: Payload, options: PublishOptions = {}): NatsCall<null> {
    checkNames("publish", options, ["headers", "confirm"]);
    const { confirm = true } = options;
    const bytes = encodePublish(publishOf(subject, payload, options.headers), "");
    return this.#call(`publish ${subject}`, { kind: "publish", bytes, confirm }, () => null);
  }

  /** Sends a message and waits for its response; fails with NO_RESPONDERS when there are no subscribers. */
  request(subject: string, payload: Payload, options: RequestOptions = {}): NatsCall<NatsMessage> {
    checkNames("request", options, ["headers", "timeout"]);
    const message = publishOf(subject, payload, options.headers);
    return this.#call(
      `request ${subject}`,
      { kind: "request", message },
      (value) => value as NatsMessage,
      options.timeout,
    );
  }

  /** Messages are received by `receive` of the same subject. */
  subscribe(subject: string, options: SubscribeOptions = {}): NatsCall<null> {
    checkNames("subscribe", options, ["queue", "keep"]);
    const { keep = "iteration", queue } = options;
    const command = {
      kind: "subscribe",
      subject: checkSubject(subject, "subscribe"),
      queue: queue === undefined ? "" : checkSubject(queue, "queue"),
      kept: keep === "user",
    } as const;
    return this.#call(`subscribe ${subject}`, command, () => null);
  }

  /** Receives a message of a subscription: the first unread one, or the next to arrive. */
  receive(subject: string, options: { readonly timeout?: Duration } = {}): NatsCall<NatsMessage> {
    checkNames("receive", options, ["timeout"]);
    return this.#call(
      `receive ${subject}`,
      { kind: "receive", subject: checkSubject(subject, "receive") },
      (value) => value as NatsMessage,
      options.timeout,
    );
  }

  ping(): NatsCall<string> {
    return this.#call("ping", { kind: "ping" }, () => "PONG");
  }

  #call<Value>(
    shown: string,
    command: NatsCommand,
    decode: (value: unknown) => Value,
    timeout?: Duration,
  ): NatsCall<Value> {
    return new DescribedCall(this.#target, {
      command,
      title: shown,
      shown,
      timeout,
      decode,
    });
  }
}

function publishOf(
  subject: string,
  payload: Payload,
  headers: Readonly<Record<string, string>> = {},
): NatsPublish {
  for (const [name, value] of Object.entries(headers))
    if (!/^[!-9;-~]+$/.test(name) || /[\r\n]/.test(String(value)))
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`);
  return { subject: checkSubject(subject, "publish"), data: payloadBytes(payload), headers };
}

function loginOf(url: URL, { password, token, username }: NatsOptions): NatsLogin {
  const user = username ?? decodeURIComponent(url.username);
  const pass = password ?? decodeURIComponent(url.password);
  if (token !== undefined) return { auth_token: token };
  if (user === "") return {};
  return pass === "" ? { auth_token: user } : { user, pass };
}
