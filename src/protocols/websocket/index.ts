/** Entry point of WebSocket. */

import { registerProtocol } from "../protocol.ts";
import { WebsocketClient } from "./client.ts";

export {
  type ExchangeOptions,
  WebsocketClient,
  WebsocketExchange,
  websocket,
  ws,
} from "./client.ts";
export type { Connection as WebsocketConnection, SocketWaitOptions } from "./connection.ts";
export type { ConnectOptions } from "./handshake.ts";
export type { WaitOptions, WebsocketMessage } from "./message.ts";
export { WebsocketResponse, type WebsocketSocket } from "./response.ts";
export type { TargetConnectOptions, WebsocketTarget } from "./target.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly ws: WebsocketClient;
  }
}

registerProtocol({ name: "ws", client: (session) => new WebsocketClient(session) });
