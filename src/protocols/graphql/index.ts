/** GraphQL over HTTP: its door. */

import { registerProtocol } from "../protocol.ts";
import { GraphqlClient } from "./client.ts";

export { GraphqlClient, type GraphqlOptions, GraphqlRequest, graphql } from "./client.ts";
export { type GraphqlError, GraphqlResponse } from "./response.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly graphql: GraphqlClient;
  }
}

registerProtocol({ name: "graphql", client: (session) => new GraphqlClient(session) });
