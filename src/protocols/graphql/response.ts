/** Response to a GraphQL request: an HTTP response whose body is `{ data, errors }`. */

import { errorText } from "../../core/base/error-text.ts";
import type { ErrorKind } from "../errors.ts";
import { contentAsked } from "../failed-content.ts";
import { HttpResponse } from "../http/response.ts";
import type { CallRecord } from "../protocol.ts";

export interface GraphqlError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly locations?: readonly { readonly line: number; readonly column: number }[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly data: unknown;
  readonly errors: readonly GraphqlError[];
}

const NOTHING: Answer = { data: null, errors: [] };

/** `Answered` is the type of `data`: excludes null where accessing it on a failed call ends the iteration. */
export class GraphqlResponse<Data = unknown, Answered = Data | null> extends HttpResponse {
  override readonly protocol: string = "graphql";
  readonly errors: readonly GraphqlError[];
  readonly #http: HttpResponse;
  readonly #data: unknown;

  private constructor(verdict: Verdict, http: HttpResponse) {
    super(verdict, verdict.error, null);
    this.#http = http;
    this.#data = verdict.answer.data;
    this.errors = verdict.answer.errors;
  }

  /** `title` names the request; a response that HTTP considers successful does not carry it. */
  static of<Data, Answered = Data | null>(
    http: HttpResponse,
    title: string,
  ): GraphqlResponse<Data, Answered> {
    return new GraphqlResponse<Data, Answered>({ ...judge(http), title }, http);
  }

  /** Null when there is none; partial when there are errors, too. In a flow, a failed call has none. */
  get data(): Answered {
    contentAsked(this);
    return this.#data as Answered;
  }

  override get headers(): ReadonlyMap<string, string> {
    return this.#http.headers;
  }

  override bytes(): Buffer {
    return this.#http.bytes();
  }
}

interface Verdict extends CallRecord {
  readonly error: string | null;
  readonly answer: Answer;
}

/** Transport failures are kept; a complete response is judged by its content. */
function judge(http: HttpResponse): Verdict {
  const failed = http.status === 0 || (http.errorKind !== null && http.errorKind !== "status");
  if (failed) return verdict(http, http.errorKind, http.error, NOTHING);
  let answer: Answer;
  try {
    answer = answerOf(http.json());
  } catch (error) {
    if (http.errorKind !== null) return verdict(http, http.errorKind, http.error, NOTHING);
    const problem = errorText(error);
    return verdict(http, "protocol", `no GraphQL answer: ${problem}`, NOTHING);
  }
  const [first] = answer.errors;
  if (first === undefined && answer.data === null && http.errorKind === null)
    return verdict(http, "protocol", 'no GraphQL answer: "data" is null without "errors"', answer);
  if (first === undefined) return verdict(http, http.errorKind, http.error, answer);
  const kind = http.errorKind ?? "application";
  return verdict(http, kind, errorsText(answer.errors, http.error ?? "GraphQL error"), answer);
}

/** Human-readable. */
export function errorsText(errors: readonly GraphqlError[], what = "GraphQL error"): string {
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return `${what}: ${errors[0]?.message ?? "none was named"}${more}`;
}

function verdict(
  http: HttpResponse,
  errorKind: ErrorKind | null,
  error: string | null,
  answer: Answer,
): Verdict {
  const { status, startedAt, firstByteAt, endedAt, connectMs, tlsMs, bytesIn, bytesOut } = http;
  const { sent } = http;
  const times = { startedAt, firstByteAt, endedAt, connectMs, tlsMs };
  return { ...times, status, bytesIn, bytesOut, sent, errorKind, error, answer };
}

/** Throws when the body is not a GraphQL response. */
export function answerOf(body: unknown): Answer {
  if (typeof body !== "object" || body === null || !("data" in body || "errors" in body))
    throw new Error('the body is JSON, but has neither "data" nor "errors"');
  const errors = "errors" in body ? body.errors : undefined;
  if (errors !== undefined && errors !== null && !Array.isArray(errors))
    throw new Error('"errors" is not a list');
  return { data: "data" in body ? body.data : null, errors: (errors ?? []).map(errorOf) };
}

export function errorOf(value: unknown): GraphqlError {
  const proper =
    typeof value === "object" &&
    value !== null &&
    "message" in value &&
    typeof value.message === "string";
  return proper ? (value as GraphqlError) : { message: JSON.stringify(value) };
}
