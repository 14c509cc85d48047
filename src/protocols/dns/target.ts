/**
 * \n A DNS server, as users write it.
 *
 *   const names = dns.target("dns://10.0.0.2");
 *   const answer = await step("look up", names.query("shop.test", "A"));     // value.answers
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type DnsCommand, DnsTcpConnection, DnsUdpConnection } from "./connection.ts";
import { type DnsAnswer, encodeQuery } from "./message.ts";

export interface QueryOptions {
  /** Asks the server to resolve recursively; true by default. */
  readonly recursive?: boolean;
  readonly timeout?: Duration;
}

export type DnsResponse = TargetResult<DnsAnswer>;

export type DnsCall = DescribedCall<DnsCommand, DnsAnswer>;

/** dns: over UDP; dns+tcp: over TCP. */
export const DNS: TargetProtocol = {
  name: "dns",
  schemes: { dns: { port: 53, secure: false }, "dns+tcp": { port: 53, secure: false } },
  optionNames: [],
  listens: false,
};

export class DnsTarget {
  readonly #target: Target<DnsCommand>;

  constructor(address: string, options: TargetOptions = {}) {
    const datagrams = address.toLowerCase().startsWith("dns:");
    this.#target = new Target(DNS, address, options, (host, now) =>
      datagrams ? new DnsUdpConnection(host, now) : new DnsTcpConnection(host, now),
    );
  }

  /** `type` is A by default; TYPE65 queries a type that has no name here. */
  query(name: string, type = "A", options: QueryOptions = {}): DnsCall {
    checkNames("query", options, ["recursive", "timeout"]);
    const { recursive = true, timeout } = options;
    return new DescribedCall(this.#target, {
      command: { query: encodeQuery(name, type, recursive) },
      title: `query ${type}`,
      shown: `${name} ${type}`,
      timeout,
      decode: (value) => value as DnsAnswer,
    });
  }
}
