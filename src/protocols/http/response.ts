/**
 * An HTTP answer as steps and checks see it. Headers and body are kept as the bytes that came and
 * are decoded when somebody looks: a check on the status alone costs nothing.
 */

import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { parseJsonBody } from "../json-body.ts";
import { type CallRecord, CallResult } from "../protocol.ts";

/** What the bytes of an answer were kept as; null where nothing was asked for. */
export interface KeptAnswer {
  /** Header lines as name and value, in order. Called at most once. */
  readHeaders(): readonly (readonly [string, string])[];
  readonly body: Buffer | null;
}

/** A decompressed body may be at most this large, whatever the compressed one was. */
const DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024;

export class HttpResponse extends CallResult {
  override readonly protocol: string = "http";
  readonly #kept: KeptAnswer | null;
  #headers: ReadonlyMap<string, string> | undefined;
  #decoded: Buffer | undefined;

  constructor(record: CallRecord, error: string | null, kept: KeptAnswer | null) {
    super(record, error);
    this.#kept = kept;
  }

  /** Names in lower case; several lines of one name are joined with ", ". */
  get headers(): ReadonlyMap<string, string> {
    if (this.#headers === undefined) {
      const headers = new Map<string, string>();
      for (const [name, value] of this.#kept?.readHeaders() ?? []) {
        const key = name.toLowerCase();
        const before = headers.get(key);
        headers.set(key, before === undefined ? value : `${before}, ${value}`);
      }
      this.#headers = headers;
    }
    return this.#headers;
  }

  header(name: string): string | undefined {
    return this.headers.get(name.toLowerCase());
  }

  /** The body's bytes, decompressed. */
  bytes(): Buffer {
    if (this.#decoded !== undefined) return this.#decoded;
    const body = this.#kept?.body ?? null;
    if (body === null) {
      if (this.errorKind !== null && this.status === 0) return EMPTY;
      throw new Error(
        "the body of this response was discarded: pass { readBody: true } to the request",
      );
    }
    this.#decoded = decompress(body, this.header("content-encoding"));
    return this.#decoded;
  }

  text(): string {
    return this.bytes().toString("utf8");
  }

  /** Throws when the body is not JSON; the step then counts as failed. */
  json<Value = unknown>(): Value {
    return parseJsonBody(this.text(), `the body (status ${this.status})`);
  }
}

const EMPTY = Buffer.alloc(0);

function decompress(body: Buffer, encoding: string | undefined): Buffer {
  const limit = { maxOutputLength: DECOMPRESSED_BYTES_MAX };
  switch (encoding?.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return gunzipSync(body, limit);
    case "deflate":
      return inflateSync(body, limit);
    case "br":
      return brotliDecompressSync(body, limit);
    default:
      return body;
  }
}

/** Splits the raw head of an HTTP/1.x answer into its header lines. */
export function splitHeaderLines(head: string): readonly (readonly [string, string])[] {
  const lines = head.split("\r\n");
  const headers: (readonly [string, string])[] = [];
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string;
    const colon = line.indexOf(":");
    if (colon > 0) headers.push([line.slice(0, colon), line.slice(colon + 1).trim()]);
  }
  return headers;
}
