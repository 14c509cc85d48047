/** Entry point of MySQL and MariaDB: `import { mysql } from "hyperscalejs/mysql"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { MysqlCommand } from "./command.ts";
import { MYSQL, type MysqlOptions, MysqlTarget } from "./target.ts";

export type { Rows } from "./command.ts";
export type {
  MysqlCall,
  MysqlOptions,
  MysqlResponse,
  MysqlTarget,
  Parameters,
} from "./target.ts";

export type MysqlClient = TargetClient<MysqlCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly mysql: MysqlClient;
  }
}

export const mysql = {
  /** A server: `mysql.target("mysql://shop:secret@db.test:3306/shop")`. */
  target: (address: string, options?: MysqlOptions): MysqlTarget =>
    new MysqlTarget(address, options),
};

registerProtocol({
  name: "mysql",
  client: (session) => new TargetClient<MysqlCommand>(session),
  ping: {
    schemes: Object.keys(MYSQL.schemes),
    call: (address, options) => new MysqlTarget(address, options).ping(),
  },
});
