/**
 * \n A connection for subscriptions, as a step of a flow opens and uses it.
 *
 *   const live = await step("connect", api.connect({ keep: "user" }));
 *   const prices = await step("subscribe", live.subscribe<Price>("subscription { price { cents } }"));
 *   const price = await step("price", prices.next({ within: "2s" }));        // price.data.price.cents
 */

import type { Duration } from "../../../core/base/duration.ts";
import { contentAsked } from "../../failed-content.ts";
import { type CallRecord, CallResult } from "../../protocol.ts";
import { CLOSE_TIMEOUT_MS } from "../../websocket/limits.ts";
import type { WebsocketResponse } from "../../websocket/response.ts";
import { answeredRecord, SocketCall, type Speaking } from "../../websocket/socket-call.ts";
import type { Greeting, TargetConnectOptions } from "../../websocket/target.ts";
import { checkedOperation } from "../request.ts";
import { type TypedDocument, textOf } from "../typed-document.ts";
import { subscribeMessage } from "./messages.ts";
import { Subscription, SubscriptionMessage } from "./subscription.ts";
import { type LiveSubscription, Subscriptions } from "./subscriptions.ts";

export interface GraphqlConnectOptions
  extends Omit<TargetConnectOptions, "protocols" | "compress"> {
  /** Payload of connection_init, for example a token. */
  readonly payload?: object;
}

type Variables = Readonly<Record<string, unknown>>;

export interface SubscribeOptions {
  /** Operation to run; required when the document contains several. */
  readonly operationName?: string;
  readonly extensions?: Variables;
  /** Timeout of the call. */
  readonly within?: Duration;
}

/** Variables are optional when none is required. */
type Given<Wanted> =
  Record<string, never> extends Wanted
    ? [variables?: Wanted, options?: SubscribeOptions]
    : [variables: Wanted, options?: SubscribeOptions];

type Described<Data> = SocketCall<Subscription<Data>, LiveSubscription | null>;

export function subscriptionGreeting(payload: object | undefined): Greeting<GraphqlConnection> {
  return {
    protocol: "graphql",
    greet: (socket, call, now) => Subscriptions.of(socket).init(call, payload, now),
    result: (record, error, speaking) => new GraphqlConnection(record, error, speaking),
  };
}

export class GraphqlConnection extends CallResult {
  override readonly protocol: string = "graphql";
  /** Null when connecting failed, or when its response was canned. */
  readonly #speaking: Speaking | null;

  constructor(record: CallRecord, error: string | null, speaking: Speaking | null) {
    super(record, error);
    this.#speaking = speaking;
  }

  get open(): boolean {
    return this.#speaking?.[1].open ?? false;
  }

  /** Describes a subscription; the call finishes when the request was written to the network. */
  subscribe<Data = unknown>(
    document: string,
    variables?: Variables,
    options?: SubscribeOptions,
  ): Described<Data>;
  subscribe<Data, Wanted>(
    document: TypedDocument<Data, Wanted>,
    ...given: Given<Wanted>
  ): Described<Data>;
  subscribe(
    document: string | TypedDocument<unknown, unknown>,
    ...[variables, options = {}]: Given<unknown>
  ): Described<unknown> {
    contentAsked(this);
    const query = textOf(document);
    const { extensions, operationName, within } = options;
    const given = variables === undefined ? {} : { variables: variables as Variables };
    const named = operationName === undefined ? {} : { operationName };
    const { name } = checkedOperation("subscription", query, { ...named, ...given });
    const request = { query, operationName, ...given, extensions };
    const speaking = this.#speaking;
    return new SocketCall(
      {
        protocol: "graphql",
        title: `subscription ${name ?? "(no name)"}`,
        within,
        payload: subscribeMessage("1", request),
        act: (socket, call, now) => Subscriptions.of(socket).subscribe(call, request, now),
        result: (response, live) => new Subscription(response, response.error, speaking, live),
        answered: ({ status = 0 }) => new Subscription(answeredRecord(status), null, null, null),
      },
      speaking,
    );
  }

  /** Describes an orderly close; the call finishes when the server has confirmed it. */
  close(): SocketCall<SubscriptionMessage<never>> {
    contentAsked(this);
    const over = (response: WebsocketResponse): SubscriptionMessage<never> =>
      SubscriptionMessage.of(response);
    return new SocketCall(
      {
        protocol: "graphql",
        title: "graphql close",
        within: CLOSE_TIMEOUT_MS,
        payload: "",
        act: (socket, call, now) => socket.finish(call, 1000, "", now),
        result: over,
        answered: SubscriptionMessage.answered<never>,
      },
      this.#speaking,
    );
  }
}
