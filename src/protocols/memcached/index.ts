/** Entry point of memcached: `import { memcached } from "hyperscalejs/memcached"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { TargetOptions } from "../target/target.ts";
import type { MemcachedCommand } from "./connection.ts";
import { MEMCACHED, MemcachedTarget } from "./target.ts";

export type {
  MemcachedCall,
  MemcachedResponse,
  MemcachedTarget,
  SetOptions,
} from "./target.ts";

export type MemcachedClient = TargetClient<MemcachedCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly memcached: MemcachedClient;
  }
}

export const memcached = {
  /** A server: `memcached.target("memcached://cache.test:11211")`. */
  target: (address: string, options?: TargetOptions): MemcachedTarget =>
    new MemcachedTarget(address, options),
};

registerProtocol({
  name: "memcached",
  client: (session) => new TargetClient<MemcachedCommand>(session),
  ping: {
    schemes: Object.keys(MEMCACHED.schemes),
    call: (address, options) => new MemcachedTarget(address, options).version(),
  },
});
