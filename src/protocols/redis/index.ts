/** Entry point of Redis: `import { redis } from "hyperscalejs/redis"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { RedisCommand } from "./connection.ts";
import { REDIS, type RedisOptions, RedisTarget } from "./target.ts";

export type { RedisArgument } from "./resp.ts";
export type {
  RedisCall,
  RedisOptions,
  RedisResponse,
  RedisTarget,
  RedisValue,
  SetOptions,
} from "./target.ts";

export type RedisClient = TargetClient<RedisCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly redis: RedisClient;
  }
}

export const redis = {
  /** A server: `redis.target("redis://user:password@cache.test:6379/2")`; rediss: over TLS. */
  target: (address: string, options?: RedisOptions): RedisTarget =>
    new RedisTarget(address, options),
};

registerProtocol({
  name: "redis",
  client: (session) => new TargetClient<RedisCommand>(session),
  ping: {
    schemes: Object.keys(REDIS.schemes),
    call: (address, options) => new RedisTarget(address, options).ping(),
  },
});
