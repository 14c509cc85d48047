/** Entry point of MongoDB: `import { mongodb } from "hyperscalejs/mongodb"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { MongodbCommand } from "./connection.ts";
import { MONGODB, type MongodbOptions, MongodbTarget } from "./target.ts";

export type {
  FindOptions,
  MongodbCall,
  MongodbDocument,
  MongodbOptions,
  MongodbResponse,
  MongodbTarget,
  Written,
} from "./target.ts";

export type MongodbClient = TargetClient<MongodbCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly mongodb: MongodbClient;
  }
}

export const mongodb = {
  /** A server: `mongodb.target("mongodb://shop:secret@db.test:27017/shop")`. */
  target: (address: string, options?: MongodbOptions): MongodbTarget =>
    new MongodbTarget(address, options),
};

registerProtocol({
  name: "mongodb",
  client: (session) => new TargetClient<MongodbCommand>(session),
  ping: {
    schemes: Object.keys(MONGODB.schemes),
    call: (address, options) => new MongodbTarget(address, options).ping(),
  },
});
