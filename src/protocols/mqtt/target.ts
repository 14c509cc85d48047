/**
 * \n An MQTT server, as users write it.
 *
 *   const broker = mqtt.target("mqtt://broker.test");
 *   await step("measure", broker.publish("rooms/7", "21.5", { qos: 1 }));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type MqttCommand, MqttConnection } from "./connection.ts";
import { checkFilter, checkTopic } from "./filter.ts";
import { encodePublish, type MqttMessage, type MqttVersion, type Qos } from "./packets.ts";

export interface MqttOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address (mqtt://user:password@host). */
  readonly username?: string;
  readonly password?: string;
  /** "5" by default, or "3.1.1". */
  readonly version?: "3.1.1" | "5";
  /** Client id of a virtual user by its number; assigned by the server by default. */
  readonly clientId?: (user: number) => string;
  /** False resumes the session that the server kept for the client id; true by default. */
  readonly cleanStart?: boolean;
}

export interface PublishOptions {
  /** QoS 0 finishes when the bytes were written to the network, 1 and 2 when the server has acknowledged. */
  readonly qos?: Qos;
  readonly retain?: boolean;
}

export interface SubscribeOptions {
  readonly qos?: Qos;
  /** "user" keeps the subscription for further iterations; otherwise it ends with its iteration. */
  readonly keep?: "user" | "iteration";
}

export type MqttResponse<Value = unknown> = TargetResult<Value>;

export type MqttCall<Value> = DescribedCall<MqttCommand, Value>;

export const MQTT: TargetProtocol = {
  name: "mqtt",
  schemes: { mqtt: { port: 1883, secure: false }, mqtts: { port: 8883, secure: true } },
  optionNames: ["username", "password", "version", "clientId", "cleanStart"],
  callsPerConnectionMax: 1_024,
};

export class MqttTarget {
  readonly #target: Target<MqttCommand>;
  readonly #version: MqttVersion;

  constructor(address: string, options: MqttOptions = {}) {
    const { cleanStart = true, clientId = () => "", version = "5" } = options;
    if (version !== "5" && version !== "3.1.1") throw new TypeError('version is "5" or "3.1.1"');
    this.#version = version === "5" ? 5 : 4;
    this.#target = new Target(MQTT, address, options, (host, now) => {
      const connect = {
        version: this.#version,
        clientId: String(clientId(host.user)),
        username: options.username ?? decodeURIComponent(url.username),
        password: options.password ?? decodeURIComponent(url.password),
        cleanStart,
      };
      return new MqttConnection(host, connect, now);
    });
    const { url } = this.#target;
  }

  publish(topic: string, payload: Payload, options: PublishOptions = {}): MqttCall<null> {
    checkNames("publish", options, ["qos", "retain"]);
    const { qos = 0, retain = false } = options;
    const how = { qos: checkQos(qos), retain, version: this.#version };
    const bytes = encodePublish(checkTopic(topic), payloadBytes(payload), how);
    return this.#call(`publish ${topic}`, { kind: "publish", bytes, qos }, () => null);
  }

  /** Messages are received by `receive` of the same filter. */
  subscribe(filter: string, options: SubscribeOptions = {}): MqttCall<null> {
    checkNames("subscribe", options, ["qos", "keep"]);
    const { keep = "iteration", qos = 0 } = options;
    const command = {
      kind: "subscribe",
      filter: checkFilter(filter),
      qos: checkQos(qos),
      kept: keep === "user",
    } as const;
    return this.#call(`subscribe ${filter}`, command, () => null);
  }

  /** Receives a message of a subscription: the first unread one, or the next to arrive. */
  receive(filter: string, options: { readonly timeout?: Duration } = {}): MqttCall<MqttMessage> {
    checkNames("receive", options, ["timeout"]);
    return this.#call(
      `receive ${filter}`,
      { kind: "receive", filter: checkFilter(filter) },
      (value) => value as MqttMessage,
      options.timeout,
    );
  }

  ping(): MqttCall<string> {
    return this.#call("ping", { kind: "ping" }, () => "PINGRESP");
  }

  #call<Value>(
    shown: string,
    command: MqttCommand,
    decode: (value: unknown) => Value,
    timeout?: Duration,
  ): MqttCall<Value> {
    return new DescribedCall(this.#target, {
      command,
      title: shown,
      shown,
      timeout,
      decode,
    });
  }
}

function checkQos(qos: unknown): Qos {
  if (qos === 0 || qos === 1 || qos === 2) return qos;
  throw new TypeError(`qos is 0, 1 or 2, not ${JSON.stringify(qos)}`);
}
