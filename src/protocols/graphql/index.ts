/** Entry point of GraphQL over HTTP and of its subscriptions over WebSocket. */

import { registerProtocol } from "../protocol.ts";
import { GraphqlClient } from "./client.ts";

export { GraphqlClient, graphql } from "./client.ts";
export { type GraphqlOptions, GraphqlRequest } from "./request.ts";
export { type GraphqlError, GraphqlResponse } from "./response.ts";
export type {
  GraphqlConnection,
  GraphqlConnectOptions,
  SubscribeOptions,
} from "./subscription/connection.ts";
export type {
  NextOptions,
  Subscription,
  SubscriptionMessage,
} from "./subscription/subscription.ts";
export type { GraphqlTarget, GraphqlTargetOptions } from "./target.ts";
export type { TypedDocument } from "./typed-document.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly graphql: GraphqlClient;
  }
}

registerProtocol({ name: "graphql", client: (session) => new GraphqlClient(session) });
