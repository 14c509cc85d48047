/** Entry point of RabbitMQ: `import { rabbitmq } from "hyperscalejs/rabbitmq"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { RabbitmqCommand } from "./command.ts";
import { RABBITMQ, type RabbitmqOptions, RabbitmqTarget } from "./target.ts";

export type { MessageOptions, QueueOptions, QueueState, ReceivedMessage } from "./command.ts";
export type {
  ConsumeOptions,
  PublishOptions,
  RabbitmqCall,
  RabbitmqOptions,
  RabbitmqResponse,
  RabbitmqTarget,
} from "./target.ts";

export type RabbitmqClient = TargetClient<RabbitmqCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly rabbitmq: RabbitmqClient;
  }
}

export const rabbitmq = {
  /** A server: `rabbitmq.target("amqp://user:password@broker.test/vhost")`; amqps: over TLS. */
  target: (address: string, options?: RabbitmqOptions): RabbitmqTarget =>
    new RabbitmqTarget(address, options),
};

registerProtocol({
  name: "rabbitmq",
  client: (session) => new TargetClient<RabbitmqCommand>(session),
  ping: {
    schemes: Object.keys(RABBITMQ.schemes),
    call: (address, options) => new RabbitmqTarget(address, options).ping(),
  },
});
