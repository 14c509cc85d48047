/** Stub servers that speak as much of each protocol as a reporter does. */

import { SECRET, type Stub } from "./contract.ts";
import { serveBigtable } from "./stubs/bigtable.ts";
import { serveCassandra } from "./stubs/cassandra.ts";
import { serveKafka } from "./stubs/kafka.ts";
import { serveMongodb } from "./stubs/mongodb.ts";
import { serveMysql } from "./stubs/mysql.ts";
import { servePostgres } from "./stubs/postgres.ts";
import { serveRedis } from "./stubs/redis.ts";
import type { OnWrite, Served } from "./stubs/sockets.ts";

interface SessionBackEnd {
  readonly name: string;
  /** Behind `NAME=`. */
  readonly target: string;
  readonly url: (port: number) => string;
  readonly refusal: string | RegExp;
  readonly serve: (onWrite: OnWrite) => Promise<Served>;
}

const NO_ENTRY = "no entry for ***";

const BACK_ENDS: readonly SessionBackEnd[] = [
  {
    ...{ name: "postgres", target: "env:URL", serve: servePostgres, refusal: NO_ENTRY },
    url: (port) => `postgres://ada:${SECRET}@127.0.0.1:${port}/load`,
  },
  {
    ...{ name: "mysql", target: "env:URL", serve: serveMysql, refusal: NO_ENTRY },
    url: (port) => `mysql://ada:${SECRET}@127.0.0.1:${port}/load`,
  },
  {
    ...{ name: "redis", target: "env:URL", serve: serveRedis, refusal: `NOPERM ${NO_ENTRY}` },
    url: (port) => `redis://ada:${SECRET}@127.0.0.1:${port}/3`,
  },
  {
    ...{ name: "mongodb", target: "env:URL", serve: serveMongodb, refusal: NO_ENTRY },
    // MongoDB's login would need a whole exchange of proofs; the address itself is the secret.
    url: (port) => `mongodb://127.0.0.1:${port}/load?appName=${SECRET}`,
  },
  {
    name: "cassandra",
    target: "env:URL,user=ada,password=env:SECRET",
    ...{ serve: serveCassandra, refusal: NO_ENTRY, url: (port) => `127.0.0.1:${port}/load` },
  },
  {
    ...{ name: "kafka", target: "env:URL", serve: serveKafka, refusal: /not authorized/i },
    url: (port) => `127.0.0.1:${port}`,
  },
  {
    name: "bigtable",
    target: "load/ours/results,endpoint=env:URL",
    ...{ serve: serveBigtable, url: (port) => `http://127.0.0.1:${port}` },
    refusal: "it answered with gRPC status 7: no entry",
  },
];

export const SESSION_STUBS = BACK_ENDS.map(({ name, refusal, serve, target, url }) => ({
  name,
  start: async (): Promise<Stub & { readonly stop: () => Promise<void> }> => {
    const writes: string[] = [];
    const env: Record<string, string> = { SECRET };
    let port = 0;
    const stub: Stub = {
      report: (other) => {
        env["URL"] = url(other ?? port);
        return `${name}=${target}`;
      },
      ...{ writes, refusal, env, answer: () => "take" },
    };
    const served = await serve((written) => stub.answer(writes.push(written)));
    port = served.port;
    return Object.assign(stub, { stop: served.stop });
  },
}));
