/** Entry point of UDP: `import { udp } from "hyperscalejs/udp"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { TargetOptions } from "../target/target.ts";
import type { UdpCommand } from "./connection.ts";
import { UDP, UdpTarget } from "./target.ts";

export type { Payload } from "../target/payload.ts";
export type { UdpCall, UdpRequestOptions, UdpResponse, UdpTarget } from "./target.ts";

export type UdpClient = TargetClient<UdpCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly udp: UdpClient;
  }
}

export const udp = {
  /** A server that answers datagrams: `udp.target("udp://game.test:7777")`. */
  target: (address: string, options?: TargetOptions): UdpTarget => new UdpTarget(address, options),
};

registerProtocol({
  name: "udp",
  client: (session) => new TargetClient<UdpCommand>(session),
  ping: {
    schemes: Object.keys(UDP.schemes),
    // The server decides whether it answers "ping".
    call: (address, options) => new UdpTarget(address, options).request("ping"),
  },
});
