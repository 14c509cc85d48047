/**
 * Loads the schema from the server itself: its reflection service (v1, else v1alpha) lists the services and returns the
 * files that describe them, as descriptors.
 */

import type { Root } from "protobufjs";
import type * as Descriptor from "protobufjs/ext/descriptor.js";
import { clock } from "../call.ts";
import {
  type CallResult,
  DEFAULT_CALL_SETTINGS,
  type Session,
  type SessionKey,
  type SessionState,
} from "../protocol.ts";
import type { DescribedCall } from "../target/described-call.ts";
import { loadDriver } from "../target/driver.ts";
import type { TargetResult } from "../target/result.ts";
import type { GrpcCommand } from "./connection.ts";
import { DESCRIPTOR_FILES_MAX } from "./limits.ts";

type Protobuf = typeof import("protobufjs");

/** Calls a method of the server with messages that are already encoded. */
export type RawCall = (
  path: string,
  messages: readonly Uint8Array[],
) => DescribedCall<GrpcCommand, readonly Buffer[]>;

const VERSIONS = ["v1", "v1alpha"] as const;

/** The required part of reflection.proto; the same in both versions. */
const PROTO = `
  syntax = "proto3";
  message Request {
    oneof message_request {
      string file_by_filename = 3;
      string file_containing_symbol = 4;
      string list_services = 7;
    }
  }
  message Response {
    FileDescriptorResponse file_descriptor_response = 4;
    ListServiceResponse list_services_response = 6;
    ErrorResponse error_response = 7;
  }
  message FileDescriptorResponse { repeated bytes file_descriptor_proto = 1; }
  message ListServiceResponse { repeated ServiceResponse service = 1; }
  message ServiceResponse { string name = 1; }
  message ErrorResponse { int32 error_code = 1; string error_message = 2; }
`;

interface ReflectionRequest {
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly listServices?: string;
}

interface Answered {
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Uint8Array[] };
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly errorResponse?: { readonly errorMessage: string };
}

/** Rejects with a readable message when the server has no reflection service or cannot be reached. */
export async function reflectedRoot(protobuf: Protobuf, call: RawCall): Promise<Root> {
  const descriptor = await loadDriver<{ readonly default: typeof Descriptor }>(
    "protobufjs/ext/descriptor.js",
    "gRPC reflection",
  );
  const session = new AskingSession();
  try {
    const reflection = new Reflection(protobuf, descriptor.default, (path, messages) =>
      performed(call(path, messages), session),
    );
    return await reflection.root();
  } finally {
    session.close();
  }
}

type Ask = (
  path: string,
  messages: readonly Uint8Array[],
) => Promise<TargetResult<readonly Buffer[]>>;

class Reflection {
  readonly #protobuf: Protobuf;
  readonly #descriptor: typeof Descriptor;
  readonly #ask: Ask;
  readonly #types: Root;
  #version: (typeof VERSIONS)[number] = "v1";
  /** Descriptor files by name. */
  readonly #files = new Map<string, Descriptor.IFileDescriptorProto>();

  constructor(protobuf: Protobuf, descriptor: typeof Descriptor, ask: Ask) {
    this.#protobuf = protobuf;
    this.#descriptor = descriptor;
    this.#ask = ask;
    this.#types = protobuf.parse(PROTO).root;
  }

  async root(): Promise<Root> {
    const listed = await this.#answers([{ listServices: "*" }]);
    const names = listed.flatMap(({ listServicesResponse: list }) => list?.service ?? []);
    let wanted: readonly ReflectionRequest[] = names.map(({ name }) => ({
      fileContainingSymbol: name,
    }));
    while (wanted.length > 0) {
      for (const answer of await this.#answers(wanted)) this.#keep(answer);
      wanted = this.#missing().map((fileByFilename) => ({ fileByFilename }));
    }
    const file = [...this.#files.values()];
    const root = this.#protobuf.Root.fromDescriptor({ file });
    root.resolveAll();
    return root;
  }

  #keep({ errorResponse, fileDescriptorResponse }: Answered): void {
    if (errorResponse !== undefined)
      throw new Error(`the server's reflection: ${errorResponse.errorMessage}`);
    for (const bytes of fileDescriptorResponse?.fileDescriptorProto ?? []) {
      const decoded: object = this.#descriptor.FileDescriptorProto.decode(bytes);
      const file = decoded as Descriptor.IFileDescriptorProto;
      if (this.#files.size >= DESCRIPTOR_FILES_MAX)
        throw new Error(`the server's reflection has more than ${DESCRIPTOR_FILES_MAX} files`);
      this.#files.set(file.name ?? "", file);
    }
  }

  /** Imported files that are not loaded yet; each is requested once. */
  #missing(): readonly string[] {
    const imported = [...this.#files.values()].flatMap(({ dependency }) => dependency ?? []);
    const missing = new Set(
      (imported as readonly string[]).filter((name) => !this.#files.has(name)),
    );
    for (const name of missing) this.#files.set(name, { name });
    return [...missing];
  }

  async #answers(requests: readonly ReflectionRequest[]): Promise<readonly Answered[]> {
    const [request, response] = ["Request", "Response"].map((name) => this.#types.lookupType(name));
    if (request === undefined || response === undefined) return [];
    const messages = requests.map((one) => request.encode(request.fromObject(one)).finish());
    const result = await this.#streamed(messages);
    return result.value.map((bytes) => response.toObject(response.decode(bytes)) as Answered);
  }

  /** Newer servers support v1, many only v1alpha. */
  async #streamed(messages: readonly Uint8Array[]): Promise<TargetResult<readonly Buffer[]>> {
    const path = `/grpc.reflection.${this.#version}.ServerReflection/ServerReflectionInfo`;
    const result = await this.#ask(path, messages);
    if (result.ok) return result;
    if (result.errorCode !== "UNIMPLEMENTED" || this.#version === "v1alpha")
      throw new Error(`server reflection failed: ${result.error}`);
    this.#version = "v1alpha";
    return this.#streamed(messages);
  }
}

function performed<Value>(
  call: DescribedCall<GrpcCommand, Value>,
  session: Session,
): Promise<TargetResult<Value>> {
  return new Promise((resolve) => {
    const callFinished = (_: unknown, result: CallResult | undefined): void =>
      resolve(result as TargetResult<Value>);
    call.bind(session, true, { callFinished }).start(clock());
  });
}

/** Session for calls made before there are users. */
class AskingSession implements Session {
  readonly user = 0;
  readonly settings = DEFAULT_CALL_SETTINGS;
  closed = false;
  readonly #states = new Map<string, SessionState>();

  state<State extends SessionState>(key: SessionKey<State>): State {
    const state = this.#states.get(key.name) ?? key.create(this);
    this.#states.set(key.name, state);
    return state as State;
  }

  close(): void {
    this.closed = true;
    for (const state of this.#states.values()) state.close();
  }
}
