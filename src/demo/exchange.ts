/** One request and its answer, as the demo target's handlers see them. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { READ_BYTES_MAX } from "./limits.ts";

const JSON_TYPE = "application/json";

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** The last segment of a path with a parameter, "" elsewhere. */
  readonly parameter: string;
  readonly #query: string;
  #search: URLSearchParams | null = null;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    target: { readonly path: string; readonly query: string; readonly parameter: string },
  ) {
    this.request = request;
    this.response = response;
    this.path = target.path;
    this.parameter = target.parameter;
    this.#query = target.query;
  }

  get query(): URLSearchParams {
    this.#search ??= new URLSearchParams(this.#query);
    return this.#search;
  }

  /** A number of the query within bounds; the fallback when it is absent or no number. */
  number(name: string, fallback: number, max: number): number {
    const text = this.query.get(name);
    const value = text === null || text === "" ? Number.NaN : Number(text);
    return Number.isFinite(value) ? Math.min(Math.max(value, 0), max) : fallback;
  }

  /** The path's parameter as a whole number within bounds, or null. */
  count(max: number): number | null {
    const value = Number(this.parameter);
    const valid = this.parameter !== "" && Number.isInteger(value) && value >= 0 && value <= max;
    return valid ? value : null;
  }

  json(status: number, value: unknown): void {
    this.send(status, JSON_TYPE, `${JSON.stringify(value)}\n`);
  }

  /** Answers with an error text for people who read the body. */
  refuse(status: number, error: string): void {
    this.json(status, { error });
  }

  send(status: number, type: string, body: string | Buffer): void {
    const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    this.response.writeHead(status, { "content-type": type, "content-length": length });
    this.response.end(body);
  }

  /** The request's body, or null when it is larger than the target reads. */
  async body(): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of this.request as AsyncIterable<Buffer>) {
      size += part.length;
      // A body over the bound is read and dropped, so that the client gets its 413.
      if (size <= READ_BYTES_MAX) parts.push(part);
    }
    return size <= READ_BYTES_MAX ? Buffer.concat(parts) : null;
  }
}
