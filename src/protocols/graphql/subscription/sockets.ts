/** Opens the WebSockets for the subscriptions of a target, with its address, headers and connections. */

import { CONNECTION_OPTION_NAMES, type ConnectionOptions } from "../../http/connection-options.ts";
import type { AuthPart, HeaderValues } from "../../http/parts.ts";
import { headerValuesOf, type WebsocketConnect, WebsocketTarget } from "../../websocket/target.ts";
import {
  type GraphqlConnection,
  type GraphqlConnectOptions,
  subscriptionGreeting,
} from "./connection.ts";
import { SUBPROTOCOL } from "./messages.ts";

interface SocketOptions extends ConnectionOptions {
  readonly headers?: HeaderValues;
  readonly auth?: AuthPart;
}

export class SubscriptionSockets {
  readonly #url: string;
  readonly #options: SocketOptions;
  /** Created on first use, because most targets have no subscriptions. Targets that differ only in headers share it. */
  readonly #target: { made: WebsocketTarget | null };

  constructor(url: string, options: SocketOptions, target: { made: WebsocketTarget | null }) {
    this.#url = url;
    this.#options = options;
    this.#target = target;
  }

  connect({ payload, ...options }: GraphqlConnectOptions): WebsocketConnect<GraphqlConnection> {
    const { auth } = this.#options;
    this.#target.made ??= this.#make();
    return this.#target.made.connectAs(subscriptionGreeting(payload), {
      ...(auth === undefined ? {} : { auth }),
      ...options,
      headers: { ...this.#options.headers, ...headerValuesOf(options.headers) },
    });
  }

  #make(): WebsocketTarget {
    const connection = Object.entries(this.#options).filter(([name]) => isConnection(name));
    const url = this.#url.replace(/^http/i, "ws");
    return new WebsocketTarget(url, {
      ...Object.fromEntries(connection),
      protocols: [SUBPROTOCOL],
    });
  }

  with(options: SocketOptions): SubscriptionSockets {
    const headers = { ...this.#options.headers, ...options.headers };
    const target = Object.keys(options).some(isConnection) ? { made: null } : this.#target;
    return new SubscriptionSockets(this.#url, { ...this.#options, ...options, headers }, target);
  }
}

function isConnection(name: string): boolean {
  return CONNECTION_OPTION_NAMES.includes(name);
}
