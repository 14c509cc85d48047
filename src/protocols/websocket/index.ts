/** WebSocket: its door. */

import { registerProtocol } from "../protocol.ts";
import { WebsocketClient } from "./client.ts";

export { type ExchangeOptions, WebsocketClient, WebsocketExchange, websocket } from "./client.ts";
export type { WaitOptions, WebsocketMessage } from "./message.ts";
export { WebsocketResponse, type WebsocketSocket } from "./response.ts";
export type { ConnectOptions } from "./target.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly ws: WebsocketClient;
  }
}

registerProtocol({ name: "ws", client: (session) => new WebsocketClient(session) });
