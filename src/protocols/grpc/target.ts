/**
 * \n A gRPC server, as users write it.
 *
 *   const shop = grpc.target("grpc://shop.test:50051", { proto: "shop.proto" });
 *   const item = await step("item", shop.unary("shop.Catalog/GetItem", { id: 7 }));
 *   const list = await step("list", shop.serverStream("shop.Catalog/List", { count: 10 }));
 */

import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type GrpcCommand, GrpcConnection } from "./connection.ts";
import { CALLS_PER_CONNECTION_MAX, MESSAGES_MAX } from "./limits.ts";
import { withPrefixes } from "./message-reader.ts";
import type { RawCall } from "./reflection.ts";
import { type MethodSchema, type ProtoFile, Schema } from "./schema.ts";

export interface GrpcOptions extends TargetOptions {
  /** The .proto files that describe its services. */
  readonly proto?: ProtoFile | readonly ProtoFile[];
  /** Loads the schema from the server before the run, instead of from .proto files. */
  readonly reflection?: boolean;
  /** Sent with every call: `{ authorization: "Bearer …" }`. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface GrpcCallOptions {
  /** Metadata of this call; overrides that of the target. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A plain message: 64-bit numbers are text, enums are names. Numbers are accepted when sending. */
export type GrpcMessage = Readonly<Record<string, unknown>>;

export type GrpcResponse<Value = GrpcMessage> = TargetResult<Value>;

export const GRPC = {
  name: "grpc",
  schemes: { grpc: { port: 50_051, secure: false }, grpcs: { port: 443, secure: true } },
  optionNames: ["proto", "reflection", "metadata"],
  callsPerConnectionMax: CALLS_PER_CONNECTION_MAX,
} satisfies TargetProtocol;

/** How a method is called. */
export type GrpcKind = "unary" | "serverStream" | "clientStream" | "bidi";

/** Encoded on first use, because .proto files are read after the workflow file. */
class LazyCommand implements GrpcCommand {
  readonly path: string;
  readonly constant: GrpcCommand["constant"];
  readonly single: boolean;
  readonly #encode: () => Buffer;
  #content: Buffer | null = null;

  constructor(parts: Omit<GrpcCommand, "content">, encode: () => Buffer) {
    this.path = parts.path;
    this.constant = parts.constant;
    this.single = parts.single;
    this.#encode = encode;
  }

  get content(): Buffer {
    this.#content ??= this.#encode();
    return this.#content;
  }
}

/** A described call. */
export class GrpcCall<Value> extends DescribedCall<GrpcCommand, Value> {
  override async prepare(): Promise<void> {
    await super.prepare();
    // Reports a message that does not match the schema before the run.
    void this.command.content;
  }
}

export class GrpcTarget {
  readonly #target: Target<GrpcCommand>;
  readonly #schema: Schema;
  readonly #metadata: Readonly<Record<string, string>>;
  readonly #constants = new Map<string, GrpcCommand["constant"]>();

  constructor(address: string, options: GrpcOptions = {}) {
    const { metadata = {}, proto = [], reflection = false } = options;
    const files = proto instanceof URL || typeof proto === "string" ? [proto] : proto;
    if (reflection && files.length > 0)
      throw new TypeError("grpc.target takes proto or reflection, not both");
    const reflecting = (): GrpcTarget => new GrpcTarget(address, { ...options, reflection: false });
    const schema = new Schema(files, reflection ? rawCalls(reflecting) : null);
    const protocol = { ...GRPC, load: () => schema.load() };
    this.#schema = schema;
    this.#metadata = metadata;
    this.#target = new Target<GrpcCommand>(
      files.length === 0 && !reflection ? GRPC : protocol,
      address,
      options,
      (host, now) => new GrpcConnection(host, now),
    );
  }

  /** One request message, one response message. */
  unary<Value extends object = GrpcMessage>(
    method: string,
    message: object,
    options?: GrpcCallOptions,
  ): GrpcCall<Value> {
    return this.#call("unary", method, [message], options);
  }

  /** One request message, a stream of responses; `value` is the list of them once the server has closed the stream. */
  serverStream<Value extends object = GrpcMessage>(
    method: string,
    message: object,
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Value[]> {
    return this.#call("serverStream", method, [message], options);
  }

  /** A stream of request messages, one response message. */
  clientStream<Value extends object = GrpcMessage>(
    method: string,
    messages: readonly object[],
    options?: GrpcCallOptions,
  ): GrpcCall<Value> {
    return this.#call("clientStream", method, messages, options);
  }

  /** Streams in both directions: all messages are sent, and `value` is the list of all responses. */
  bidi<Value extends object = GrpcMessage>(
    method: string,
    messages: readonly object[],
    options?: GrpcCallOptions,
  ): GrpcCall<readonly Value[]> {
    return this.#call("bidi", method, messages, options);
  }

  /** Bidirectional stream of messages that are already encoded. */
  raw(path: string, messages: readonly Uint8Array[]): GrpcCall<readonly Buffer[]> {
    const parts = { path, constant: this.#constant({}), single: false };
    const command = new LazyCommand(parts, () => withPrefixes(messages));
    return this.#described(command, path.slice(1), (answers) => answers as readonly Buffer[]);
  }

  /** Calls the server's health service; a server without one answers UNIMPLEMENTED. */
  ping(): GrpcCall<string> {
    const parts = {
      path: "/grpc.health.v1.Health/Check",
      constant: this.#constant({}),
      single: true,
    };
    const command = new LazyCommand(parts, () => withPrefixes([new Uint8Array(0)]));
    return this.#described(command, "grpc.health.v1.Health/Check", () => "healthy");
  }

  #call<Value>(
    kind: GrpcKind,
    method: string,
    messages: readonly object[],
    { metadata = {} }: GrpcCallOptions = {},
  ): GrpcCall<Value> {
    if (messages.length > MESSAGES_MAX)
      throw new RangeError(`a call sends at most ${MESSAGES_MAX} messages`);
    const schema = (): MethodSchema => checkedKind(this.#schema.method(method), kind);
    const single = kind === "unary" || kind === "clientStream";
    const constant = this.#constant(metadata);
    const command = new LazyCommand({ path: `/${method}`, constant, single }, () => {
      const { encode } = schema();
      return withPrefixes(messages.map(encode));
    });
    const decode = (answers: unknown): Value => {
      const decoded = (answers as readonly Buffer[]).map((bytes) => schema().decode(bytes));
      return (single ? decoded[0] : decoded) as Value;
    };
    const call = this.#described(command, method, decode);
    // In the loop, encode now so that an error shows the user's own line.
    if (this.#schema.loaded) void command.content;
    return call;
  }

  #described<Value>(
    command: GrpcCommand,
    method: string,
    decode: (answers: unknown) => Value,
  ): GrpcCall<Value> {
    return new GrpcCall<Value>(this.#target, {
      command,
      title: method,
      shown: method,
      decode,
    });
  }

  /** Constant header fields of a call's request; the same object for the same metadata. */
  #constant(metadata: Readonly<Record<string, string>>): GrpcCommand["constant"] {
    const { host, protocol } = this.#target.url;
    const own = Object.entries({ ...this.#metadata, ...metadata });
    const key = JSON.stringify(own);
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const scheme = protocol === "grpcs:" ? "https" : "http";
    const fields = {
      pseudo: [
        [":method", "POST"],
        [":scheme", scheme],
        [":authority", host],
      ] as const,
      rest: [
        ["content-type", "application/grpc"] as const,
        ["te", "trailers"] as const,
        ["user-agent", "hyperscale"] as const,
        ...own.map(([name, value]) => checkedMetadata(name, value)),
      ],
    };
    if (this.#constants.size < CONSTANTS_MAX) this.#constants.set(key, fields);
    return fields;
  }
}

/** Uses one target, created on first use. */
function rawCalls(make: () => GrpcTarget): RawCall {
  let target: GrpcTarget | null = null;
  return (path, messages) => {
    target ??= make();
    return target.raw(path, messages);
  };
}

/** Metadata combinations to cache; others are encoded for each call. */
const CONSTANTS_MAX = 64;

function checkedKind(schema: MethodSchema, kind: GrpcKind): MethodSchema {
  const { streamsResponses, streamsRequests, path } = schema;
  const is: GrpcKind = streamsRequests
    ? streamsResponses
      ? "bidi"
      : "clientStream"
    : streamsResponses
      ? "serverStream"
      : "unary";
  if (is !== kind) throw new TypeError(`${path.slice(1)} is called by ${is}(…), not ${kind}(…)`);
  return schema;
}

function checkedMetadata(name: string, value: string): readonly [string, string] {
  const lower = name.toLowerCase();
  if (!/^[0-9a-z_.-]+$/.test(lower) || lower.startsWith("grpc-"))
    throw new TypeError(`"${name}" is not a metadata name`);
  if (typeof value !== "string" || !/^[\x20-\x7e]*$/.test(value))
    throw new TypeError(`the metadata "${name}" must be printable ASCII`);
  return [lower, value];
}
