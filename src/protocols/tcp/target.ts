/**
 * \n A server that speaks over plain TCP or TLS, as users write it.
 *
 *   const line = tcp.target("tcp://line.test:7");
 *   const echo = await step("echo", line.request("hello\n", { answer: { until: "\n" } }));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { framingOf, type TcpAnswer, type TcpFraming } from "./answer.ts";
import { type TcpCommand, TcpConnection } from "./connection.ts";

export interface TcpRequestOptions {
  /** How the end of the response is recognised. */
  readonly answer: TcpAnswer;
  readonly timeout?: Duration;
}

export type TcpResponse<Value = Buffer> = TargetResult<Value>;

export type TcpCall<Value> = DescribedCall<TcpCommand, Value>;

export const TCP: TargetProtocol = {
  name: "tcp",
  schemes: { tcp: { port: 0, secure: false }, tcps: { port: 0, secure: true } },
  optionNames: [],
};

export class TcpTarget {
  readonly #target: Target<TcpCommand>;

  constructor(address: string, options: TargetOptions = {}) {
    this.#target = new Target(TCP, address, options, (host, now) => new TcpConnection(host, now));
  }

  /** Sends bytes and waits for the response. */
  request(payload: Payload, options: TcpRequestOptions): TcpCall<Buffer> {
    checkNames("request", options ?? {}, ["answer", "timeout"]);
    const framing = framingOf(options?.answer);
    return this.#call("request", payload, framing, (value) => value as Buffer, options.timeout);
  }

  /** Sends bytes; finishes when they were handed to the network. */
  send(payload: Payload): TcpCall<null> {
    return this.#call("send", payload, { kind: "none" }, () => null);
  }

  #call<Value>(
    title: string,
    payload: Payload,
    framing: TcpFraming,
    decode: (value: unknown) => Value,
    timeout?: Duration,
  ): TcpCall<Value> {
    const bytes = payloadBytes(payload);
    return new DescribedCall(this.#target, {
      command: { bytes, framing },
      title,
      shown: `${title} <${bytes.length} bytes>`,
      timeout,
      decode,
    });
  }
}
