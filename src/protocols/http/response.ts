/**
 * An HTTP answer as steps and checks see it. Headers and body are kept as the bytes that came and
 * are decoded when somebody looks: a check on the status alone costs nothing.
 */

import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { errorCode } from "../errors.ts";
import { contentAsked } from "../failed-content.ts";
import { parseJsonBody } from "../json-body.ts";
import { type CallRecord, CallResult } from "../protocol.ts";
import { DecodedBody, type DecodedOwner } from "./decoded-bodies.ts";
import { findElement, type HtmlElement } from "./html.ts";

/** What the bytes of an answer were kept as; null where nothing was asked for. */
export interface KeptAnswer {
  /** Header lines as name and value, in order. Called at most once. */
  readHeaders(): readonly (readonly [string, string])[];
  readonly body: Buffer | null;
  /** The body as text, where that is known without looking at its bytes: it is plain ASCII. */
  readonly plainText?: string | null;
  /** The body was to be kept, but was longer than `bodyBytesMax`. */
  readonly tooLong: boolean;
  /** Holds for the body as it came and as it is once decompressed. */
  readonly bodyBytesMax: number;
  /** Whose user forgets the decompressed body in the end. */
  readonly owner: DecodedOwner;
}

/** `Body` is only for the compiler: what the request says that its answer's JSON is. */
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

  /** The body's bytes, decompressed. */
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
      // A body that cannot be decompressed says nothing.
      return "";
    }
  }

  text(): string {
    return this.#kept?.plainText ?? this.bytes().toString("utf8");
  }

  /** Throws when the body is not JSON; the step then counts as failed. */
  json<Value = Body>(): Value {
    contentAsked(this);
    return parseJsonBody(this.text(), `the body (status ${this.status})`);
  }

  /**
   * The first element of an HTML page whose own tag fits: `find("input[name=csrf]")?.value`. Tag, id,
   * class and attributes; no descendants and no lists.
   */
  find(selector: string): HtmlElement | undefined {
    return findElement(this.text(), selector);
  }

  /** The first place in the body that fits, with its groups; null when there is none. */
  match(pattern: RegExp): RegExpExecArray | null {
    // One that remembers where it stopped would skip what the next answer begins with.
    pattern.lastIndex = 0;
    const found = pattern.exec(this.text());
    pattern.lastIndex = 0;
    return found;
  }
}

const EMPTY = Buffer.alloc(0);
/** More than a sample of a failure shows. */
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
