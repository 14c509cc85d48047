/** Services and messages described by .proto files or by the server, parsed with protobufjs. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Method, Root, Type } from "protobufjs";
import { errorText } from "../../core/base/error-text.ts";
import { didYouMean } from "../../core/base/nearest.ts";
import { workflowFolder } from "../protocol.ts";
import { loadDriver } from "../target/driver.ts";
import { type RawCall, reflectedRoot } from "./reflection.ts";
import { sendable } from "./sendable.ts";

/** A file beside the workflow, or its address (`new URL("./shop.proto", import.meta.url)`). */
export type ProtoFile = string | URL;

type Protobuf = typeof import("protobufjs");

/** Plain messages: 64-bit numbers as text, enums by name, defaults included. */
const PLAIN = { longs: String, enums: String, defaults: true, arrays: true, objects: true };

export interface MethodSchema {
  /** "/shop.Catalog/GetItem". */
  readonly path: string;
  readonly streamsRequests: boolean;
  readonly streamsResponses: boolean;
  encode(message: object): Uint8Array;
  decode(bytes: Uint8Array): object;
}

export class Schema {
  readonly #files: readonly ProtoFile[];
  /** Calls the server for reflection; null when .proto files are given. */
  readonly #reflection: RawCall | null;
  #root: Root | null = null;
  #loading: Promise<void> | null = null;
  readonly #methods = new Map<string, MethodSchema>();

  constructor(files: readonly ProtoFile[], reflection: RawCall | null) {
    this.#files = files;
    this.#reflection = reflection;
  }

  get #source(): string {
    return this.#reflection === null ? "no .proto file has" : "the server does not have";
  }

  get loaded(): boolean {
    return this.#root !== null;
  }

  load(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<void> {
    const reflection = this.#reflection;
    this.#root =
      reflection === null
        ? await readProtoFiles(this.#files.map(pathOf))
        : await reflectedRoot(await loadProtobuf(), reflection);
  }

  /** `name` is "shop.Catalog/GetItem". Throws a readable message when there is no such method. */
  method(name: string): MethodSchema {
    const known = this.#methods.get(name);
    if (known !== undefined) return known;
    const root = this.#root;
    if (root === null) throw new Error("the server's schema is loaded when the run is prepared");
    const names = methodNames(root);
    const [service = "", method = ""] = name.split("/");
    if (!names.includes(name))
      throw new TypeError(`${this.#source} a method "${name}"${didYouMean(name, names)}`);
    const found = root.lookupService(service).methods[method] as Method;
    const schema = methodSchema(name, found);
    this.#methods.set(name, schema);
    return schema;
  }
}

async function loadProtobuf(): Promise<Protobuf> {
  return (await loadDriver<{ default: Protobuf }>("protobufjs", "gRPC")).default;
}

/** Reads the files and those that they import. */
export async function readProtoFiles(files: string[]): Promise<Root> {
  const protobuf = await loadProtobuf();
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`there is no file ${missing}`);
  const root = new protobuf.Root();
  try {
    await root.load(files);
    root.resolveAll();
  } catch (error) {
    throw new Error(`${files.join(", ")} cannot be read: ${errorText(error)}`);
  }
  return root;
}

function pathOf(file: ProtoFile): string {
  if (file instanceof URL) return fileURLToPath(file);
  return file.startsWith("file:") ? fileURLToPath(file) : resolve(workflowFolder() ?? ".", file);
}

function methodSchema(name: string, method: Method): MethodSchema {
  method.resolve();
  const {
    requestStream = false,
    resolvedRequestType,
    resolvedResponseType,
    responseStream,
  } = method;
  const [requestType, responseType] = [resolvedRequestType as Type, resolvedResponseType as Type];
  return {
    path: `/${name}`,
    streamsRequests: requestStream === true,
    streamsResponses: responseStream === true,
    encode: (given) => {
      const message = sendable(requestType, given);
      const problem = requestType.verify(message);
      if (problem !== null) throw new TypeError(`${name}: ${requestType.name}.${problem}`);
      return requestType.encode(requestType.fromObject(message)).finish();
    },
    decode: (bytes) => responseType.toObject(responseType.decode(bytes), PLAIN),
  };
}

function methodNames(root: Root): string[] {
  const names: string[] = [];
  const visit = (space: { readonly nestedArray: readonly object[] }, prefix: string): void => {
    for (const nested of space.nestedArray as readonly Named[]) {
      const full = prefix === "" ? nested.name : `${prefix}.${nested.name}`;
      if (nested.methods !== undefined)
        names.push(...Object.keys(nested.methods).map((method) => `${full}/${method}`));
      if (nested.nestedArray !== undefined) visit(nested as Required<Named>, full);
    }
  };
  visit(root, "");
  return names;
}

interface Named {
  readonly name: string;
  readonly methods?: Readonly<Record<string, Method>>;
  readonly nestedArray?: readonly object[];
}
