/** Entry point of Socket.IO: `import { socketio } from "hyperscalejs/socketio"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { SocketioCommand } from "./connection.ts";
import { type SocketioOptions, SocketioTarget } from "./target.ts";

export type { SocketioEvent } from "./connection.ts";
export type {
  SocketioCall,
  SocketioCallOptions,
  SocketioOptions,
  SocketioResponse,
  SocketioTarget,
} from "./target.ts";

export type SocketioClient = TargetClient<SocketioCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly socketio: SocketioClient;
  }
}

export const socketio = {
  /** A namespace of a server: `socketio.target("https://chat.test/rooms")`. */
  target: (address: string, options?: SocketioOptions): SocketioTarget =>
    new SocketioTarget(address, options),
};

/** No `ping`: its addresses are those of HTTP, which `hyperscale ping` handles itself. */
registerProtocol({
  name: "socketio",
  client: (session) => new TargetClient<SocketioCommand>(session),
});
