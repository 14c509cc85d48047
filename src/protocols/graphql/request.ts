/** A GraphQL request as a step performs it: validated when it is made, carried by an HTTP request. */

import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import { HeadersPart, type HeaderValues } from "../http/parts.ts";
import type { Method, RequestOptions } from "../http/request.ts";
import type { HttpResponse } from "../http/response.ts";
import type { HttpRequest } from "../http1/index.ts";
import type { Http2Request } from "../http2/index.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallRecord,
  CallResult,
  CallSettings,
  CallSink,
  CannedAnswer,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { type Operation, readDocument } from "./document.ts";
import { GraphqlResponse } from "./response.ts";

/** Options of one request besides its document. */
export interface GraphqlOptions
  extends Omit<RequestOptions, "json" | "body" | "form" | "params" | "readBody"> {
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Operation to run; required when the document contains several. */
  readonly operationName?: string;
  /** Sent unchanged: persisted queries, tracing. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Queries may also use GET, for caches. */
  readonly method?: "POST" | "GET";
  /** HTTP version that carries the request; HTTP/1.1 by default. */
  readonly over?: "http1" | "http2";
}

export type OperationKind = "query" | "mutation";

/** Content of one request besides its document, independent of the transport. */
type Said = Pick<GraphqlOptions, "extensions" | "operationName" | "variables">;

type Carrier = HttpRequest | Http2Request;

/** Makes the HTTP request that carries a GraphQL request. */
type Carry = (method: Method, options: RequestOptions) => Carrier;

const ACCEPT = "application/graphql-response+json, application/json;q=0.9";

/**
 * `Answered` is the type of `data` in its response: includes null unless accessing it on a failed call ends the
 * iteration.
 */
export class GraphqlRequest<Data = unknown, Answered = Data | null>
  implements PreparedCall<GraphqlResponse<Data, Answered>>
{
  declare readonly resultType?: GraphqlResponse<Data, Answered>;
  readonly protocol = "graphql";
  /** Default name of a step with this request: "query User". */
  readonly title: string;
  /** The HTTP request that carries it. */
  readonly carrier: Carrier;

  constructor(kind: OperationKind, document: string, options: GraphqlOptions, carry: Carry) {
    const { variables, operationName, extensions, method = "POST", over: _, ...rest } = options;
    const operation = checkedOperation(kind, document, options);
    if (kind === "mutation" && method === "GET")
      throw new TypeError("a mutation cannot be sent with GET");
    const payload = { query: document, operationName, variables, extensions };
    const carried =
      method === "POST" ? { json: payload } : { params: mapValues(payload, asParameter) };
    this.title = `${kind} ${operation.name ?? "(no name)"}`;
    this.carrier = carry(method, { ...rest, ...carried, readBody: true });
  }

  prepare(environment: CallEnvironment): Promise<void> {
    return this.carrier.prepare(environment);
  }

  origin(): ReturnType<HttpRequest["origin"]> {
    return this.carrier.origin();
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    const bound = new BoundRequest(keep, sink);
    // Success depends on the body, so it is kept here even if no function reads it.
    bound.carried = this.carrier.bind(session, true, bound);
    return bound;
  }

  rebind(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall {
    const bound = spent instanceof BoundRequest ? spent : new BoundRequest(true, sink);
    bound.carried = this.carrier.rebind(session, bound.carried, bound);
    return bound;
  }

  answered(answer: CannedAnswer): GraphqlResponse<Data, Answered> {
    return GraphqlResponse.of(this.carrier.answered(answer), this.carrier.title);
  }

  shown(settings: CallSettings): { readonly request: string; readonly prepared: string } {
    return this.carrier.shown(settings);
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title, "return graphql.send(…) in a step");
  }
}

/** Request of one user in flight: turns the HTTP response into a GraphQL response. */
class BoundRequest implements BoundCall, CallSink {
  carried: BoundCall | null = null;
  readonly #keep: boolean;
  readonly #sink: CallSink;

  constructor(keep: boolean, sink: CallSink) {
    this.#keep = keep;
    this.#sink = sink;
  }

  start(now: number): void {
    this.carried?.start(now);
  }

  get sent(): number {
    return this.carried?.sent ?? 0;
  }

  callFinished({ title = "" }: CallRecord, result: CallResult | undefined): void {
    const response = GraphqlResponse.of(result as HttpResponse, title);
    this.#sink.callFinished(response, this.#keep ? response : undefined);
  }
}

/** Functions send the same few documents repeatedly; each is parsed once. */
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
      throw new TypeError(`the document contains several operations (${names}): say operationName`);
    return first;
  }
  const found = operations.find((operation) => operation.name === name);
  if (found === undefined)
    throw new TypeError(`operationName: the document contains no "${name}", only ${names}`);
  return found;
}

/** Returns the requested operation; throws when there is none of that kind, or a variable is missing. */
export function checkedOperation(
  kind: Operation["kind"],
  document: string,
  { operationName, variables }: Said,
): Operation {
  const operation = chosenOperation(operationsOf(document), operationName);
  if (operation.kind !== kind) {
    const hint =
      operation.kind === "subscription"
        ? "subscriptions need a WebSocket: connect() of a target, then subscribe()"
        : `use graphql.${operation.kind}`;
    throw new TypeError(`graphql.${kind} got a ${operation.kind}: ${hint}`);
  }
  const missing = operation.variables.find(
    ({ name, required }) => required && (variables?.[name] ?? null) === null,
  );
  if (missing !== undefined)
    throw new TypeError(`the variable "$${missing.name}" is required: put it into variables`);
  return operation;
}

/** Header names are case-insensitive. */
export function withAccept(own: HeaderValues | HeadersPart | undefined): HeaderValues {
  const entries = own instanceof HeadersPart ? own.entries : Object.entries(own ?? {});
  const given = entries.some(([name]) => name.toLowerCase() === "accept");
  return { ...(given ? {} : { accept: ACCEPT }), ...Object.fromEntries(entries) };
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
