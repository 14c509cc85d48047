/**
 * \n A server that answers datagrams, as users write it.
 *
 *   const game = udp.target("udp://game.test:7777");
 *   const answer = await step("where", game.request(Buffer.of(1, 2), { timeout: "200ms" }));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type UdpCommand, UdpConnection } from "./connection.ts";

export interface UdpRequestOptions {
  /** Recognises the response; the next datagram by default. */
  readonly match?: (bytes: Buffer) => boolean;
  readonly timeout?: Duration;
}

export type UdpResponse<Value = Buffer> = TargetResult<Value>;

export type UdpCall<Value> = DescribedCall<UdpCommand, Value>;

/** Largest payload of one IPv4 datagram. */
const DATAGRAM_BYTES_MAX = 65_507;

export const UDP: TargetProtocol = {
  name: "udp",
  schemes: { udp: { port: 0, secure: false } },
  optionNames: [],
  listens: false,
};

export class UdpTarget {
  readonly #target: Target<UdpCommand>;

  constructor(address: string, options: TargetOptions = {}) {
    this.#target = new Target(UDP, address, options, (host, now) => new UdpConnection(host, now));
  }

  /** Sends a datagram and waits for one; nothing is sent again, so a loss is a timeout. */
  request(payload: Payload, options: UdpRequestOptions = {}): UdpCall<Buffer> {
    checkNames("request", options, ["match", "timeout"]);
    const { match = () => true, timeout } = options;
    return this.#call("request", payload, match, timeout, (value) => value as Buffer);
  }

  /** Sends a datagram; finishes when it was handed to the network, delivered or not. */
  send(payload: Payload): UdpCall<null> {
    return this.#call("send", payload, null, undefined, () => null);
  }

  #call<Value>(
    title: string,
    payload: Payload,
    answers: UdpCommand["answers"],
    timeout: Duration | undefined,
    decode: (value: unknown) => Value,
  ): UdpCall<Value> {
    const bytes = payloadBytes(payload);
    if (bytes.length > DATAGRAM_BYTES_MAX)
      throw new RangeError(`a datagram has at most ${DATAGRAM_BYTES_MAX} bytes`);
    return new DescribedCall(this.#target, {
      command: { bytes, answers },
      title,
      shown: `${title} <${bytes.length} bytes>`,
      timeout,
      decode,
    });
  }
}
