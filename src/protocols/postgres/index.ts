/** Entry point of PostgreSQL: `import { postgres } from "hyperscalejs/postgres"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { PostgresCommand } from "./connection.ts";
import { POSTGRES, type PostgresOptions, PostgresTarget } from "./target.ts";

export type { Rows } from "./connection.ts";
export type {
  Parameters,
  PostgresCall,
  PostgresOptions,
  PostgresResponse,
  PostgresTarget,
} from "./target.ts";

export type PostgresClient = TargetClient<PostgresCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly postgres: PostgresClient;
  }
}

export const postgres = {
  /** A server: `postgres.target("postgres://shop:secret@db.test:5432/shop")`. */
  target: (address: string, options?: PostgresOptions): PostgresTarget =>
    new PostgresTarget(address, options),
};

registerProtocol({
  name: "postgres",
  client: (session) => new TargetClient<PostgresCommand>(session),
  ping: {
    schemes: Object.keys(POSTGRES.schemes),
    call: (address, options) => new PostgresTarget(address, options).ping(),
  },
});
