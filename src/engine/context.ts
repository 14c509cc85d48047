/** The object that user functions receive: one per virtual user, its clients made on first use. */

import { GraphqlClient } from "../protocols/graphql/client.ts";
import { HttpClient } from "../protocols/http1/client.ts";
import { Http2Client } from "../protocols/http2/client.ts";
import type { Session } from "../protocols/protocol.ts";
import { WebsocketClient } from "../protocols/websocket/client.ts";
import type { Clients, UserInfo } from "../workflow/context.ts";
import type { AnyContext } from "../workflow/definition.ts";

/** Clients of all protocols over one session. */
export class SessionClients implements Clients {
  readonly #session: Session;
  #http: HttpClient | undefined;
  #http2: Http2Client | undefined;
  #graphql: GraphqlClient | undefined;
  #ws: WebsocketClient | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  get http(): HttpClient {
    this.#http ??= new HttpClient(this.#session);
    return this.#http;
  }

  get http2(): Http2Client {
    this.#http2 ??= new Http2Client(this.#session);
    return this.#http2;
  }

  get graphql(): GraphqlClient {
    this.#graphql ??= new GraphqlClient(this.#session);
    return this.#graphql;
  }

  get ws(): WebsocketClient {
    this.#ws ??= new WebsocketClient(this.#session);
    return this.#ws;
  }
}

/** What a context needs of the execution around it. */
export interface ContextHost {
  readonly setup: unknown;
  readonly used: Readonly<Record<string, unknown>>;
  readonly core: number;
  readonly signal: AbortSignal;
  sleep(ms: number): Promise<void>;
}

export class UserContext implements AnyContext {
  results: Record<string, unknown> = {};
  data: Readonly<Record<string, unknown>> = NOTHING;
  iteration = 0;
  readonly #host: ContextHost;
  readonly #clients: SessionClients;
  readonly #id: number;
  #vars: Record<string, unknown> | undefined;
  #user: UserInfo | undefined;

  constructor(id: number, host: ContextHost, session: Session) {
    this.#id = id;
    this.#host = host;
    this.#clients = new SessionClients(session);
  }

  get http(): HttpClient {
    return this.#clients.http;
  }
  get http2(): Http2Client {
    return this.#clients.http2;
  }
  get graphql(): GraphqlClient {
    return this.#clients.graphql;
  }
  get ws(): WebsocketClient {
    return this.#clients.ws;
  }
  get used(): Readonly<Record<string, unknown>> {
    return this.#host.used;
  }
  get setup(): unknown {
    return this.#host.setup;
  }
  get vars(): Record<string, unknown> {
    this.#vars ??= {};
    return this.#vars;
  }
  get user(): UserInfo {
    if (this.#user?.iteration !== this.iteration) {
      this.#user = { id: this.#id, iteration: this.iteration, core: this.#host.core };
    }
    return this.#user;
  }
  get signal(): AbortSignal {
    return this.#host.signal;
  }
  readonly sleep = (ms: number): Promise<void> => this.#host.sleep(ms);
}

const NOTHING = Object.freeze({});
