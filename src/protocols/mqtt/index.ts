/** Entry point of MQTT 3.1.1 and 5: `import { mqtt } from "hyperscalejs/mqtt"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { MqttCommand } from "./connection.ts";
import { MQTT, type MqttOptions, MqttTarget } from "./target.ts";

export type { Payload } from "../target/payload.ts";
export type { MqttMessage } from "./packets.ts";
export type {
  MqttCall,
  MqttOptions,
  MqttResponse,
  MqttTarget,
  PublishOptions,
  SubscribeOptions,
} from "./target.ts";

export type MqttClient = TargetClient<MqttCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly mqtt: MqttClient;
  }
}

export const mqtt = {
  /** A server: `mqtt.target("mqtt://user:password@broker.test:1883")`. */
  target: (address: string, options?: MqttOptions): MqttTarget => new MqttTarget(address, options),
};

registerProtocol({
  name: "mqtt",
  client: (session) => new TargetClient<MqttCommand>(session),
  ping: {
    schemes: Object.keys(MQTT.schemes),
    call: (address, options) => new MqttTarget(address, options).ping(),
  },
});
