/**
 * \n A GraphQL server as a target: the common options of all requests to it. It has no user and sends nothing; its
 * verbs describe requests, which steps perform.
 *
 *   const api = graphql.target("https://shop.test/graphql");
 *   const me = api.with({ headers: { authorization: `Bearer ${token}` } });
 *   (await step("cart", me.query<Cart>("query($id: ID!) { cart(id: $id) { total } }", { id }))).data.cart
 */

import type { HttpTarget, TargetOptions } from "../http/target.ts";
import { http } from "../http1/index.ts";
import { http2 } from "../http2/index.ts";
import type { WebsocketConnect } from "../websocket/target.ts";
import { type GraphqlOptions, GraphqlRequest, type OperationKind, withAccept } from "./request.ts";
import type { GraphqlConnection, GraphqlConnectOptions } from "./subscription/connection.ts";
import { SubscriptionSockets } from "./subscription/sockets.ts";
import { type TypedDocument, textOf } from "./typed-document.ts";

export interface GraphqlTargetOptions extends Omit<TargetOptions, "readBody"> {
  /** HTTP version that carries the requests; HTTP/1.1 by default. */
  readonly over?: "http1" | "http2";
  /** WebSocket address for subscriptions; the target's own address by default. */
  readonly subscriptionUrl?: string;
}

type Variables = Readonly<Record<string, unknown>>;

/** Options of one request besides document and variables. */
type TargetRequestOptions = Omit<GraphqlOptions, "variables" | "over">;

/** Variables are optional when none is required. */
type Given<Wanted> =
  Record<string, never> extends Wanted
    ? [variables?: Wanted, options?: TargetRequestOptions]
    : [variables: Wanted, options?: TargetRequestOptions];

/** Accessing `data` of a failed call ends the iteration, so `data` is always complete. */
type Described<Data> = GraphqlRequest<Data, Data>;

export class GraphqlTarget {
  readonly #carriers: HttpTarget<"http1"> | HttpTarget<"http2">;
  readonly #sockets: SubscriptionSockets;

  constructor(
    url: string,
    options: GraphqlTargetOptions = {},
    like?: readonly [HttpTarget<"http1"> | HttpTarget<"http2">, SubscriptionSockets],
  ) {
    const { over, subscriptionUrl = url, ...rest } = options;
    if (over !== undefined && over !== "http1" && over !== "http2")
      throw new TypeError(`over: "http1" or "http2", not ${JSON.stringify(over)}`);
    const all = { ...rest, headers: withAccept(rest.headers) };
    const [carriers, sockets] = like ?? [];
    this.#carriers =
      carriers ?? (over === "http2" ? http2.target(url, all) : http.target(url, all));
    this.#sockets = sockets ?? new SubscriptionSockets(subscriptionUrl, rest, { made: null });
  }

  /** Describes a connection for subscriptions (graphql-transport-ws); its result can subscribe on it. */
  connect(options: GraphqlConnectOptions = {}): WebsocketConnect<GraphqlConnection> {
    return this.#sockets.connect(options);
  }

  query<Data = unknown>(
    document: string,
    variables?: Variables,
    options?: TargetRequestOptions,
  ): Described<Data>;
  query<Data, Wanted>(
    document: TypedDocument<Data, Wanted>,
    ...given: Given<Wanted>
  ): Described<Data>;
  query(document: string | TypedDocument<unknown, unknown>, ...given: Given<unknown>) {
    return this.#describe("query", document, given);
  }

  mutation<Data = unknown>(
    document: string,
    variables?: Variables,
    options?: TargetRequestOptions,
  ): Described<Data>;
  mutation<Data, Wanted>(
    document: TypedDocument<Data, Wanted>,
    ...given: Given<Wanted>
  ): Described<Data>;
  mutation(document: string | TypedDocument<unknown, unknown>, ...given: Given<unknown>) {
    return this.#describe("mutation", document, given);
  }

  #describe(
    kind: OperationKind,
    document: string | TypedDocument<unknown, unknown>,
    [variables, options]: readonly [variables?: unknown, options?: TargetRequestOptions],
  ): Described<unknown> {
    const given = variables === undefined ? {} : { variables: variables as Variables };
    return new GraphqlRequest(kind, textOf(document), { ...options, ...given }, (method, carried) =>
      this.#carriers.request(method, "", carried),
    );
  }

  /** Returns the same target with other options; connections are shared when only headers differ. */
  with(options: Omit<GraphqlTargetOptions, "over" | "subscriptionUrl">): GraphqlTarget {
    return new GraphqlTarget("", {}, [this.#carriers.with(options), this.#sockets.with(options)]);
  }
}
