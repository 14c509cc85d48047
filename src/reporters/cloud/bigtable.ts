/**
 * Google Bigtable over gRPC (google.bigtable.v2, MutateRows): one unary call per batch, encoded by hand, since only
 * five messages are needed.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { chunks, definePush, httpTarget } from "../definition.ts";
import { framePoints, type PointObject } from "../encoders/point-json.ts";
import { Protobuf, protobufFields } from "../encoders/protobuf.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { RefusedError, type SendOutcome, type Transport } from "../pipeline/delivery.ts";
import { HttpClient } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import { ReporterError } from "../settings.ts";
import { GOOGLE_KEY, GoogleTokens } from "./google-token.ts";

const ROWS_MAX = 500;
const SCOPE = "https://www.googleapis.com/auth/bigtable.data";
const PATH = "/google.bigtable.v2.Bigtable/MutateRows";
/** Transient gRPC codes: canceled, deadline exceeded, resource exhausted, aborted, internal, unavailable. */
const PASSING: ReadonlySet<number> = new Set([1, 4, 8, 10, 13, 14]);
/** Flag and length before a message. */
const PREFIX_BYTES = 5;
const ANSWER_BYTES_MAX = 4 * 1_024 * 1_024;

export const bigtable = definePush({
  name: "bigtable",
  about: "Google Bigtable: a row per point, its values as cells",
  target: "project/instance/table",
  settings: {
    family: { kind: "text", about: "the column family, which must be there", default: "points" },
    key: GOOGLE_KEY,
    endpoint: {
      kind: "text",
      about: "another server, such as the emulator: http://127.0.0.1:8086",
      default: "https://bigtable.googleapis.com",
    },
  },
  evidence: "emulator",
  testedWith: "Google's Bigtable emulator, read by cbt; tokens by a stub that checks signatures",
  transport: ({ settings, target }) => {
    if (!/^[\w:.-]+\/[\w-]+\/[\w.-]+$/.test(target))
      throw new ReporterError("report bigtable: write bigtable=PROJECT/INSTANCE/TABLE");
    const tokens = new GoogleTokens("bigtable", settings.key, SCOPE);
    return new BigtableTransport(httpTarget("bigtable", settings.endpoint), tokens, target);
  },
  encode: (frame, { family }) =>
    chunks(framePoints(frame), ROWS_MAX).map((points) => {
      const request = new Protobuf();
      for (const point of points) request.message(2, entryOf(point, family));
      return { body: request.finish(), points: points.length };
    }),
});

/** MutateRowsRequest.Entry; writing the same row again is idempotent. */
function entryOf(point: PointObject, family: string): Protobuf {
  const { at, figure, kind, labels, scope, values } = point;
  const { run = "", run_id = run, step = "", workflow = "", ...rest } = labels;
  const others = Object.entries(rest).map((pair) => pair.join("="));
  const key = [run_id, kind, scope, workflow, step, figure, ...others, at].join("#");
  const micros = Date.parse(at) * 1_000;
  const cells = {
    ...{ labels: JSON.stringify(labels), type: point.type, unit: point.unit },
    ...Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])),
  };
  const entry = new Protobuf().text(1, key);
  for (const [qualifier, value] of Object.entries(cells)) {
    const cell = new Protobuf().text(1, family).text(2, qualifier).varint(3, micros).text(4, value);
    entry.message(2, new Protobuf().message(1, cell));
  }
  return entry;
}

class BigtableTransport implements Transport {
  readonly #url: URL;
  readonly #tokens: GoogleTokens;
  readonly #table: Buffer;
  readonly #client = new HttpClient();
  #session: ClientHttp2Session | undefined;

  constructor(url: URL, tokens: GoogleTokens, target: string) {
    const [project, instance, table] = target.split("/");
    this.#url = url;
    this.#tokens = tokens;
    const name = `projects/${project}/instances/${instance}/tables/${table}`;
    this.#table = new Protobuf().text(1, name).finish();
  }

  async send({ body }: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const ask = (made: Parameters<HttpClient["ask"]>[0]) => this.#client.ask(made, signal);
    const headers = await this.#tokens.headers(ask, Date.now());
    const message = Buffer.concat([this.#table, body]);
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(message.length, 1);
    const answer = await this.#call(headers, Buffer.concat([prefix, message]), signal);
    return outcomeOf(answer);
  }

  async close(): Promise<void> {
    this.#client.close();
    this.#session?.destroy();
  }

  #call(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<GrpcAnswer> {
    const session = this.#connected();
    const stream = session.request(
      {
        ...{ ":method": "POST", ":path": PATH, te: "trailers" },
        ...{ "content-type": "application/grpc", "user-agent": "hyperscale", ...headers },
      },
      { signal },
    );
    stream.setTimeout(REQUEST_MS_MAX, () => {
      stream.destroy(new Error(`it did not answer within ${REQUEST_MS_MAX / 1_000} s`));
    });
    stream.end(body);
    return readGrpc(stream).catch((error: Error) => {
      // Never reuse a connection that failed.
      session.destroy();
      throw signal.aborted ? (signal.reason as Error) : error;
    });
  }

  #connected(): ClientHttp2Session {
    const held = this.#session;
    if (held !== undefined && !held.destroyed && !held.closed) return held;
    const session = connect(this.#url);
    // Errors are reported on the streams.
    session.on("error", () => {});
    session.unref();
    this.#session = session;
    return session;
  }
}

interface GrpcAnswer {
  readonly status: number;
  readonly text: string;
  readonly body: Buffer;
}

function readGrpc(stream: ClientHttp2Stream): Promise<GrpcAnswer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let [bytes, http] = [0, 0];
    let metadata: Readonly<Record<string, unknown>> = {};
    stream.on("response", (headers) => {
      http = Number(headers[":status"]);
      metadata = { ...metadata, ...headers };
    });
    stream.on("trailers", (trailers) => {
      metadata = { ...metadata, ...trailers };
    });
    stream.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes <= ANSWER_BYTES_MAX) parts.push(part);
      else stream.destroy(new Error("its answer is too long"));
    });
    stream.on("error", reject);
    stream.on("close", () => {
      const status = metadata["grpc-status"];
      const text = decodeURIComponent(String(metadata["grpc-message"] ?? ""));
      if (status === undefined)
        reject(
          http >= 400 && http < 500 && http !== 429
            ? new RefusedError(`it answered ${http}`)
            : new Error(http === 0 ? "the connection was lost" : `it answered ${http}`),
        );
      else resolve({ status: Number(status), text, body: Buffer.concat(parts) });
    });
  });
}

/** The call may succeed while single rows fail: the first failed row decides the outcome. */
function outcomeOf({ body, status, text }: GrpcAnswer): SendOutcome {
  const failed = status !== 0 ? { code: status, text } : failedRow(body);
  if (failed === null) return { kind: "ok" };
  const problem = `it answered with gRPC status ${failed.code}: ${failed.text}`;
  return PASSING.has(failed.code)
    ? { kind: "retry", problem, afterMs: null }
    : { kind: "refused", problem };
}

/** Reads MutateRowsResponse: entries (1), each with a google.rpc.Status (2) of code (1) and message (2). */
function failedRow(body: Buffer): { readonly code: number; readonly text: string } | null {
  for (let at = 0; at + PREFIX_BYTES <= body.length; ) {
    const end = at + PREFIX_BYTES + body.readUInt32BE(at + 1);
    for (const [, entry] of protobufFields(body.subarray(at + PREFIX_BYTES, end)))
      for (const [field, status] of typeof entry === "number" ? [] : protobufFields(entry)) {
        if (field !== 2 || typeof status === "number") continue;
        const fields = new Map(protobufFields(status));
        const [code, text] = [fields.get(1), fields.get(2)];
        if (typeof code === "number" && code !== 0) return { code, text: String(text ?? "") };
      }
    at = end;
  }
  return null;
}
