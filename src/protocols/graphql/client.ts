/**
 * GraphQL over HTTP as users write it.
 *
 *   step("user", graphql.query("https://…/graphql", "query($id: ID!) { user(id: $id) { name } }",
 *     { variables: { id: 1 } }))
 *   step("user", ({ graphql }) => graphql.query(url, document, { variables: { id } }))
 *
 * The document is checked when the request is made, and its bytes are ready before the loop begins.
 * Errors inside an answer make the call fail with kind "application".
 */

import type { UrlPart } from "../http/parts.ts";
import { HeadersPart, type HeaderValues } from "../http/parts.ts";
import type { RequestOptions } from "../http/request.ts";
import type { HttpResponse } from "../http/response.ts";
import { HttpClient, HttpRequest } from "../http1/index.ts";
import { Http2Client, Http2Request } from "../http2/index.ts";
import type { BoundCall, CallEnvironment, CallSink, PreparedCall, Session } from "../protocol.ts";
import { type Operation, readDocument } from "./document.ts";
import { GraphqlResponse } from "./response.ts";

type Target = string | UrlPart;

export interface GraphqlOptions
  extends Omit<RequestOptions, "json" | "body" | "form" | "params" | "readBody"> {
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Which operation to run; needed when the document holds several. */
  readonly operationName?: string;
  /** Goes along as it is: persisted queries, tracing. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Queries may also go as GET, for the sake of caches. */
  readonly method?: "POST" | "GET";
  /** What carries the request; HTTP/1.1 by default. */
  readonly over?: "http1" | "http2";
}

const ACCEPT = "application/graphql-response+json, application/json;q=0.9";

export class GraphqlRequest<Data = unknown> implements PreparedCall<GraphqlResponse<Data>> {
  declare readonly resultType?: GraphqlResponse<Data>;
  readonly protocol = "graphql";
  /** The HTTP request that carries it. */
  readonly carrier: HttpRequest | Http2Request;

  constructor(
    kind: "query" | "mutation",
    target: Target,
    document: string,
    options: GraphqlOptions = {},
  ) {
    const { variables, operationName, extensions, method = "POST", over, ...rest } = options;
    const operation = chosenOperation(operationsOf(document), operationName);
    checkRequest(kind, operation, variables, method);
    const payload = { query: document, operationName, variables, extensions };
    const carried =
      method === "POST" ? { json: payload } : { params: mapValues(payload, asParameter) };
    const http = { ...rest, ...carried, headers: withAccept(rest.headers), readBody: true };
    this.carrier =
      over === "http2"
        ? new Http2Request(method, target, http)
        : new HttpRequest(method, target, http);
  }

  prepare(environment: CallEnvironment): Promise<void> {
    return this.carrier.prepare(environment);
  }

  origin(): ReturnType<HttpRequest["origin"]> {
    return this.carrier.origin();
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    // Only the body tells success from failure, so it is kept here even if nobody else can see it.
    return this.carrier.bind(session, true, {
      callFinished: (_record, result) => {
        const response = GraphqlResponse.of<Data>(result as HttpResponse);
        sink.callFinished(response, keep ? response : undefined);
      },
    });
  }
}

/** One virtual user's client: connections and cookies are those of HTTP, in the same session. */
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
    this.send(new GraphqlRequest<Data>("query", target, document, options));

  mutation = <Data = unknown>(
    target: Target,
    document: string,
    options?: GraphqlOptions,
  ): Promise<GraphqlResponse<Data>> =>
    this.send(new GraphqlRequest<Data>("mutation", target, document, options));

  /** Sends a prepared request now. */
  async send<Data>(request: GraphqlRequest<Data>): Promise<GraphqlResponse<Data>> {
    const { carrier } = request;
    if (carrier instanceof HttpRequest)
      return GraphqlResponse.of<Data>(await this.#http1.send(carrier));
    this.#http2 ??= new Http2Client(this.#session);
    return GraphqlResponse.of<Data>(await this.#http2.send(carrier));
  }
}

/** Prepared requests: `step("user", graphql.query("https://…", "{ me { name } }"))`. */
export const graphql = {
  query: <Data = unknown>(target: Target, document: string, options?: GraphqlOptions) =>
    new GraphqlRequest<Data>("query", target, document, options),
  mutation: <Data = unknown>(target: Target, document: string, options?: GraphqlOptions) =>
    new GraphqlRequest<Data>("mutation", target, document, options),
};

/** Functions send the same few documents again and again: each is read once. */
const DOCUMENTS_MAX = 256;
const documents = new Map<string, readonly Operation[]>();

function operationsOf(document: string): readonly Operation[] {
  let operations = documents.get(document);
  if (operations === undefined) {
    operations = readDocument(document);
    if (documents.size >= DOCUMENTS_MAX) documents.clear();
    documents.set(document, operations);
  }
  return operations;
}

function chosenOperation(operations: readonly Operation[], name: string | undefined): Operation {
  const names = operations.map((operation) => operation.name ?? "(no name)").join(", ");
  const [first] = operations;
  if (name === undefined) {
    if (first === undefined || operations.length > 1)
      throw new TypeError(`the document holds several operations (${names}): say operationName`);
    return first;
  }
  const found = operations.find((operation) => operation.name === name);
  if (found === undefined)
    throw new TypeError(`operationName: the document holds no "${name}", only ${names}`);
  return found;
}

function checkRequest(
  kind: "query" | "mutation",
  operation: Operation,
  variables: Readonly<Record<string, unknown>> | undefined,
  method: "POST" | "GET",
): void {
  if (operation.kind !== kind) {
    const hint =
      operation.kind === "subscription"
        ? "subscriptions need a WebSocket"
        : `use graphql.${operation.kind}`;
    throw new TypeError(`graphql.${kind} got a ${operation.kind}: ${hint}`);
  }
  if (kind === "mutation" && method === "GET")
    throw new TypeError("a mutation cannot be sent with GET");
  const missing = operation.variables.find(
    ({ name, required }) => required && (variables?.[name] ?? null) === null,
  );
  if (missing !== undefined)
    throw new TypeError(`the variable "$${missing.name}" is required: put it into variables`);
}

function withAccept(own: HeaderValues | HeadersPart | undefined): HeaderValues | HeadersPart {
  const entries = own instanceof HeadersPart ? own.entries : Object.entries(own ?? {});
  const given = entries.some(([name]) => name.toLowerCase() === "accept");
  if (given) return own ?? {};
  return { accept: ACCEPT, ...Object.fromEntries(entries) };
}

function asParameter(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function mapValues<Value, Mapped>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
