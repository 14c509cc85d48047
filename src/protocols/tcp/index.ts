/** Entry point of TCP and TLS: `import { tcp } from "hyperscalejs/tcp"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { TargetOptions } from "../target/target.ts";
import type { TcpCommand } from "./connection.ts";
import { TCP, TcpTarget } from "./target.ts";

export type { Payload } from "../target/payload.ts";
export type { TcpAnswer } from "./answer.ts";
export type { TcpCall, TcpRequestOptions, TcpResponse, TcpTarget } from "./target.ts";

export type TcpClient = TargetClient<TcpCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly tcp: TcpClient;
  }
}

export const tcp = {
  /** Any TCP server: `tcp.target("tcp://line.test:7")`; tcps: over TLS. */
  target: (address: string, options?: TargetOptions): TcpTarget => new TcpTarget(address, options),
};

registerProtocol({
  name: "tcp",
  client: (session) => new TargetClient<TcpCommand>(session),
  ping: {
    schemes: Object.keys(TCP.schemes),
    // The protocol of the server is unknown, so an accepted connection has to suffice.
    call: (address, options) => new TcpTarget(address, options).send(""),
  },
});
