/** Entry point of server-sent events: `import { sse } from "hyperscalejs/sse"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { SseCommand } from "./connection.ts";
import { type SseOptions, SseTarget } from "./target.ts";

export type { SseEvent } from "./events.ts";
export type { EventsOptions, SseCall, SseOptions, SseResponse, SseTarget } from "./target.ts";

export type SseClient = TargetClient<SseCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly sse: SseClient;
  }
}

export const sse = {
  /** A server: `sse.target("https://shop.test")`. */
  target: (address: string, options?: SseOptions): SseTarget => new SseTarget(address, options),
};

/** No `ping`: its addresses are those of HTTP, which `hyperscale ping` handles itself. */
registerProtocol({ name: "sse", client: (session) => new TargetClient<SseCommand>(session) });
