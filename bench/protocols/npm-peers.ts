/**
 * Clients that are no dependency here: fetched from npm into the folder of the servers. Of their types only what the
 * loops call is declared.
 */

import { createRequire } from "node:module";
import { join } from "node:path";
import { findNpmPackage } from "../../src/protocols/testing/real-server.ts";
import { ignored, type Operation } from "./comparison.ts";

class NpmPeer<Module> {
  readonly name: string;
  readonly absent: string | null;
  readonly #folder: string | null;

  constructor(name: string, version: string) {
    this.name = name;
    this.#folder = findNpmPackage(name, version);
    this.absent = this.#folder === null ? `no ${name} ${version}, and npm does not give it` : null;
  }

  load(): Module {
    if (this.#folder === null) throw new Error(`there is no ${this.name}`);
    return createRequire(join(this.#folder, "peer.js"))(this.name) as Module;
  }
}

interface Emitter {
  on(event: string, listener: () => void): unknown;
}

interface Ioredis {
  readonly Redis: new (
    options: object,
  ) => Emitter & { connect(): Promise<void>; get(key: string): Promise<unknown> };
}

export const ioredis = new NpmPeer<Ioredis>("ioredis", "6.0.0");

export async function ioredisGet(port: number, key: string): Promise<Operation> {
  const { Redis } = ioredis.load();
  const options = { host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null };
  const client = new Redis(options);
  client.on("error", ignored);
  await client.connect();
  return () => client.get(key);
}

interface Mqtt {
  connectAsync(url: string, options: object): Promise<MqttClient>;
}

interface MqttClient extends Emitter {
  publish(
    topic: string,
    payload: string,
    options: { readonly qos: 0 | 1 },
    sent: (error?: Error | null) => void,
  ): unknown;
}

export const mqtt = new NpmPeer<Mqtt>("mqtt", "5.16.0");

export async function mqttPublish(port: number, qos: 0 | 1): Promise<Operation> {
  const options = { protocolVersion: 5, reconnectPeriod: 0 };
  const client = await mqtt.load().connectAsync(`mqtt://127.0.0.1:${port}`, options);
  client.on("error", ignored);
  return () =>
    new Promise<void>((resolve, reject) => {
      client.publish("rooms/7", "21.5", { qos }, (error) => {
        if (error === undefined || error === null) resolve();
        else reject(error);
      });
    });
}

interface Nats {
  connect(options: object): Promise<NatsClient>;
}

interface NatsClient {
  publish(subject: string, payload: Uint8Array): void;
  flush(): Promise<void>;
}

export const nats = new NpmPeer<Nats>("nats", "2.29.3");

/** NATS's `publish` returns before anything is written, so only a flush confirms that the server has them. */
export async function natsPublish(port: number, publishesPerFlush: number): Promise<Operation> {
  const client = await nats.load().connect({ servers: `127.0.0.1:${port}`, reconnect: false });
  const payload = Buffer.from("hello");
  let published = 0;
  return async () => {
    client.publish("orders", payload);
    if (++published % publishesPerFlush === 0) await client.flush();
  };
}
