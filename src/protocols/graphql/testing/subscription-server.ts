/** A real GraphQL subscription server for the tests: graphql-ws on ws, with the schema of a shop. */

import http from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import type * as Graphql from "graphql";
import type { ServerOptions } from "graphql-ws";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

/** The same module instance that graphql-ws loads: a second one would not recognise the schema of the first. */
const { buildSchema, GraphQLError } = createRequire(import.meta.url)("graphql") as typeof Graphql;

const SDL = `
  type Query { shop: String }
  type Price { item: ID!, cents: Int!, at: Float! }
  type Subscription {
    "As many as asked for, then it completes."
    price(item: ID!, count: Int!): Price
    "Says nothing until it is ended."
    silence: Price
    "One price, then one whose fields cannot be found."
    partly: Price
  }
`;

interface PriceArguments {
  readonly item: string;
  readonly count: number;
}

export interface SubscriptionServer {
  readonly url: string;
  /** Messages sent for subscriptions, and subscriptions in total, by its own count. */
  readonly sent: () => number;
  readonly subscribed: () => number;
  /** Connections in total, and open ones. */
  readonly connections: () => number;
  readonly open: () => number;
  /** Active subscriptions. */
  readonly active: () => number;
  /** Terminates all connections. */
  hangUp(): void;
  /** Sends this text to all clients, whether or not the protocol allows it. */
  say(text: string): void;
  close(): Promise<void>;
}

/** Rejects clients without the token, where one is required. */
export async function serveSubscriptions(token: string | null = null): Promise<SubscriptionServer> {
  const counts = { sent: 0, subscribed: 0, connections: 0, active: 0 };
  const web = http.createServer();
  const sockets = new WebSocketServer({ server: web, path: "/graphql" });
  sockets.on("connection", () => counts.connections++);
  const options: ServerOptions<{ readonly token?: string }> = {
    schema: buildSchema(SDL),
    roots: { subscription: subscriptionRoot(counts) },
    onConnect: ({ connectionParams }) => token === null || connectionParams?.token === token,
    onSubscribe: () => {
      counts.subscribed++;
    },
    onNext: () => {
      counts.sent++;
    },
  };
  const subscriptions = useServer(options, sockets);
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", 1_024, resolve));
  const { port } = web.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/graphql`,
    sent: () => counts.sent,
    subscribed: () => counts.subscribed,
    connections: () => counts.connections,
    open: () => sockets.clients.size,
    active: () => counts.active,
    hangUp: () => {
      for (const client of sockets.clients) client.terminate();
    },
    say: (text) => {
      for (const client of sockets.clients) client.send(text);
    },
    close: async () => {
      await subscriptions.dispose();
      for (const client of sockets.clients) client.terminate();
      await new Promise((resolve) => web.close(resolve));
    },
  };
}

function subscriptionRoot(counts: { active: number }): Record<string, object> {
  const price = (item: string, cents: number): object => ({ item, cents, at: Date.now() });
  return {
    async *price({ count, item }: PriceArguments) {
      if (item === "none") throw new GraphQLError("there is no such item");
      counts.active++;
      try {
        for (let cents = 1; cents <= count; cents++) yield { price: price(item, cents) };
      } finally {
        counts.active--;
      }
    },
    silence: () => silence(counts),
    async *partly() {
      yield { partly: price("tea", 1) };
      yield { partly: { item: "tea", at: 1, cents: () => Promise.reject(new Error("unknown")) } };
    },
  };
}

/** An iterable that can be ended while it waits, as a broker's can. */
function silence(counts: { active: number }): AsyncIterableIterator<never> {
  let end: (result: IteratorReturnResult<undefined>) => void = () => undefined;
  counts.active++;
  const iterator: AsyncIterableIterator<never> = {
    next: () =>
      new Promise((resolve) => {
        end = resolve;
      }),
    return: () => {
      counts.active--;
      const done = { done: true, value: undefined } as const;
      end(done);
      return Promise.resolve(done);
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
