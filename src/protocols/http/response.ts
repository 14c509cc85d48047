/**
 * An HTTP response as steps and checks see it. Headers and body are kept as received and decoded on access: a check of
 * the status alone costs nothing.
 */

import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { errorCode } from "../errors.ts";
import { contentAsked } from "../failed-content.ts";
import { parseJsonBody } from "../json-body.ts";
import { type CallRecord, CallResult } from "../protocol.ts";
import { DecodedBody, type DecodedOwner } from "./decoded-bodies.ts";
import { findElement, type HtmlElement } from "./html.ts";

/** Kept bytes of a response; null where nothing was requested. */
export interface KeptAnswer {
  /** Parses header lines into name and value, in order. Called at most once. */
  readHeaders(): readonly (readonly [string, string])[];
  readonly body: Buffer | null;
  /** Body as text, when it is known to be plain ASCII without scanning its bytes. */
  readonly plainText?: string | null;
  /** The body should have been kept but exceeded `bodyBytesMax`. */
  readonly tooLong: boolean;
  /** Limits the body both as received and after decompression. */
  readonly bodyBytesMax: number;
  /** Owner of the cache for the decompressed body. */
  readonly owner: DecodedOwner;
}

/** `Body` exists only for the compiler: the JSON type that the request declares. */
export class HttpResponse<Body = unknown> extends CallResult {
  override readonly protocol: string = "http";
  readonly #kept: KeptAnswer | null;
  #headers: ReadonlyMap<string, string> | undefined;
  #decoded: DecodedBody | undefined;

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

  /** Decompressed bytes of the body. */
  bytes(): Buffer {
    const known = this.#decoded?.bytes ?? null;
    if (known !== null) return known;
    const kept = this.#kept;
    const body = kept?.body ?? null;
    if (kept === null || body === null) {
      if (this.errorKind !== null && this.status === 0) return EMPTY;
      if (kept?.tooLong === true) throw new Error(tooLong("", kept.bodyBytesMax));
      throw new Error(
        "the body of this response was discarded: pass { readBody: true } to the request",
      );
    }
    const encoding = this.header("content-encoding")?.trim().toLowerCase();
    const decode = encoding === undefined ? undefined : DECODERS.get(encoding);
    if (decode === undefined) return body;
    const bytes = decompress(body, decode, kept.bodyBytesMax);
    this.#decoded ??= new DecodedBody();
    kept.owner.decoded.keep(this.#decoded, bytes);
    return bytes;
  }

  override get excerpt(): string {
    try {
      return this.#kept?.body == null ? "" : this.bytes().toString("utf8", 0, EXCERPT_BYTES);
    } catch {
      // A body that cannot be decompressed has no excerpt.
      return "";
    }
  }

  text(): string {
    return this.#kept?.plainText ?? this.bytes().toString("utf8");
  }

  /** Throws when the body is not JSON, which fails the step. */
  json<Value = Body>(): Value {
    contentAsked(this);
    return parseJsonBody(this.text(), `the body (status ${this.status})`);
  }

  /**
   * Returns the first element of an HTML page whose own tag matches: `find("input[name=csrf]")?.value`. Supports tag,
   * id, class and attributes; no descendants and no lists.
   */
  find(selector: string): HtmlElement | undefined {
    return findElement(this.text(), selector);
  }

  /** Returns the first match in the body, with its groups; null when there is none. */
  match(pattern: RegExp): RegExpExecArray | null {
    // A stateful pattern would skip the beginning of the next response.
    pattern.lastIndex = 0;
    const found = pattern.exec(this.text());
    pattern.lastIndex = 0;
    return found;
  }
}

const EMPTY = Buffer.alloc(0);
/** Longer than what a sample of a failure shows. */
const EXCERPT_BYTES = 1_024;

type Decoder = (body: Buffer, limit: { readonly maxOutputLength: number }) => Buffer;

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", gunzipSync],
  ["x-gzip", gunzipSync],
  ["deflate", inflateSync],
  ["br", brotliDecompressSync],
]);

function decompress(body: Buffer, decode: Decoder, bytesMax: number): Buffer {
  try {
    return decode(body, { maxOutputLength: bytesMax });
  } catch (cause) {
    if (errorCode(cause) !== "ERR_BUFFER_TOO_LARGE") throw cause;
    throw new Error(tooLong(" once decompressed", bytesMax), { cause });
  }
}

function tooLong(when: string, bytesMax: number): string {
  return (
    `the body is longer than ${bytesMax} bytes${when} and was not kept: pass a larger ` +
    "{ bodyBytesMax } to the request, or leave the body alone"
  );
}

/** Splits the raw head of an HTTP/1.x response into its header lines. */
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
