/** Entry point of Kafka: `import { kafka } from "hyperscalejs/kafka"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { KafkaCommand } from "./command.ts";
import { KAFKA, type KafkaOptions, KafkaTarget } from "./target.ts";

export type { Placement, ReceivedMessage } from "./command.ts";
export type {
  BatchMessage,
  KafkaCall,
  KafkaOptions,
  KafkaResponse,
  KafkaTarget,
  ProduceOptions,
  SubscribeOptions,
} from "./target.ts";

export type KafkaClient = TargetClient<KafkaCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly kafka: KafkaClient;
  }
}

export const kafka = {
  /** A cluster, by one of its brokers: `kafka.target("kafka://broker.test:9092")`; kafkas: over TLS. */
  target: (address: string, options?: KafkaOptions): KafkaTarget =>
    new KafkaTarget(address, options),
};

registerProtocol({
  name: "kafka",
  client: (session) => new TargetClient<KafkaCommand>(session),
  ping: {
    schemes: Object.keys(KAFKA.schemes),
    call: (address, options) => new KafkaTarget(address, options).ping(),
  },
});
