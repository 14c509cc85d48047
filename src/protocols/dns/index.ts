/** Entry point of DNS over UDP and TCP: `import { dns } from "hyperscalejs/dns"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { TargetOptions } from "../target/target.ts";
import type { DnsCommand } from "./connection.ts";
import { DNS, DnsTarget } from "./target.ts";

export type { DnsAnswer, DnsRecord } from "./message.ts";
export type { DnsCall, DnsResponse, DnsTarget, QueryOptions } from "./target.ts";

export type DnsClient = TargetClient<DnsCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly dns: DnsClient;
  }
}

export const dns = {
  /** A server: `dns.target("dns://10.0.0.2:53")`; dns+tcp: over TCP. */
  target: (address: string, options?: TargetOptions): DnsTarget => new DnsTarget(address, options),
};

registerProtocol({
  name: "dns",
  client: (session) => new TargetClient<DnsCommand>(session),
  ping: {
    schemes: Object.keys(DNS.schemes),
    call: (address, options) => new DnsTarget(address, options).query(".", "NS"),
  },
});
