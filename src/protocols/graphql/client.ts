/**
 * \n GraphQL over HTTP, as users write it.
 *
 *   const api = graphql.target("https://…/graphql");
 *   step("user", api.query("query($id: ID!) { user(id: $id) { name } }", { id: 1 }))
 *
 *   step("user", graphql.query("https://…/graphql", "query($id: ID!) { user(id: $id) { name } }",
 *     { variables: { id: 1 } }))
 *   step("user", ({ graphql }) => graphql.query(url, document, { variables: { id } }))
 *
 * The document is checked when the request is made, and its bytes are ready before the loop begins. Errors inside a
 * response fail the call with kind "application".
 */

import type { UrlPart } from "../http/parts.ts";
import { HttpClient, HttpRequest } from "../http1/index.ts";
import { Http2Client, Http2Request } from "../http2/index.ts";
import type { Session } from "../protocol.ts";
import { type GraphqlOptions, GraphqlRequest, type OperationKind, withAccept } from "./request.ts";
import { GraphqlResponse } from "./response.ts";
import { GraphqlTarget, type GraphqlTargetOptions } from "./target.ts";

type Target = string | UrlPart;

function requestTo<Data>(
  kind: OperationKind,
  target: Target,
  document: string,
  options: GraphqlOptions = {},
): GraphqlRequest<Data> {
  const headers = withAccept(options.headers);
  return new GraphqlRequest<Data>(kind, document, { ...options, headers }, (method, http) =>
    options.over === "http2"
      ? Http2Request.of(method, target, http)
      : HttpRequest.of(method, target, http),
  );
}

/** Client of one virtual user; it shares connections and cookies with HTTP in the same session. */
export class GraphqlClient {
  readonly #http1: HttpClient;
  readonly #session: Session;
  #http2: Http2Client | null = null;

  constructor(session: Session) {
    this.#session = session;
    this.#http1 = new HttpClient(session);
  }

  query = <Data = unknown>(
    target: Target,
    document: string,
    options?: GraphqlOptions,
  ): Promise<GraphqlResponse<Data>> =>
    this.send(requestTo<Data>("query", target, document, options));

  mutation = <Data = unknown>(
    target: Target,
    document: string,
    options?: GraphqlOptions,
  ): Promise<GraphqlResponse<Data>> =>
    this.send(requestTo<Data>("mutation", target, document, options));

  /** Sends a prepared request now. */
  async send<Data, Answered>({
    carrier,
  }: GraphqlRequest<Data, Answered>): Promise<GraphqlResponse<Data>> {
    const { title } = carrier;
    if (carrier instanceof HttpRequest)
      return GraphqlResponse.of(await this.#http1.send(carrier), title);
    this.#http2 ??= new Http2Client(this.#session);
    return GraphqlResponse.of(await this.#http2.send(carrier), title);
  }
}

/** Prepared requests: `step("user", graphql.query("https://…", "{ me { name } }"))`. */
export const graphql = {
  query: <Data = unknown>(target: Target, document: string, options?: GraphqlOptions) =>
    requestTo<Data>("query", target, document, options),
  mutation: <Data = unknown>(target: Target, document: string, options?: GraphqlOptions) =>
    requestTo<Data>("mutation", target, document, options),
  /** Common options of all requests to one server: address, headers, TLS, HTTP version. */
  target: (url: string, options?: GraphqlTargetOptions) => new GraphqlTarget(url, options),
};
