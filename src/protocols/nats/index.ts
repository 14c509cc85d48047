/** Entry point of NATS: `import { nats } from "hyperscalejs/nats"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { NatsCommand } from "./connection.ts";
import { NATS, type NatsOptions, NatsTarget } from "./target.ts";

export type { Payload } from "../target/payload.ts";
export type {
  NatsCall,
  NatsOptions,
  NatsResponse,
  NatsTarget,
  PublishOptions,
  RequestOptions,
  SubscribeOptions,
} from "./target.ts";
export type { NatsMessage } from "./wire.ts";

export type NatsClient = TargetClient<NatsCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly nats: NatsClient;
  }
}

export const nats = {
  /** A server: `nats.target("nats://user:password@bus.test:4222")`. */
  target: (address: string, options?: NatsOptions): NatsTarget => new NatsTarget(address, options),
};

registerProtocol({
  name: "nats",
  client: (session) => new TargetClient<NatsCommand>(session),
  ping: {
    schemes: Object.keys(NATS.schemes),
    call: (address, options) => new NatsTarget(address, options).ping(),
  },
});
