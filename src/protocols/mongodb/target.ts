/**
 * \n A MongoDB server, as users write it.
 *
 *   const db = mongodb.target("mongodb://shop:secret@db.test/shop");
 *   const found = await step("find", db.find("items", { sku: "tea" }, { limit: 1 }));
 *   await step("order", db.insertOne("orders", { sku: "tea", count: 2 }));
 */

import type { Document } from "bson";
import { credentialsOf, pathOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { type MongodbCommand, MongodbConnection, type MongodbLogin } from "./connection.ts";
import { DOCUMENTS_MAX, MESSAGE_BYTES_MAX } from "./limits.ts";
import { bson } from "./message.ts";

export interface MongodbOptions extends TargetOptions {
  /** User to log in as by SCRAM; defaults to the user in the address, else no login. */
  readonly user?: string;
  readonly password?: string;
  /** Defaults to the path of the address. */
  readonly database?: string;
  /** Database of the user: `?authSource=` of the address, "admin" by default. */
  readonly authSource?: string;
  /** Uses TLS, like `?tls=true` in the address. */
  readonly tls?: boolean;
}

/** MongoDB documents; classes such as ObjectId are those of the package `bson`. */
export type MongodbDocument = Readonly<Document>;

export interface FindOptions {
  readonly limit?: number;
  readonly skip?: number;
  readonly sort?: Readonly<Record<string, 1 | -1>>;
  readonly projection?: MongodbDocument;
  /** Documents per batch; by default the server's, 101 in the first one. */
  readonly batchSize?: number;
}

export interface Written {
  /** Documents inserted, deleted, or matched by an update. */
  readonly count: number;
  /** Matched documents that an update changed. */
  readonly modified: number;
}

export type MongodbResponse<Value = MongodbDocument> = TargetResult<Value>;

/** Encoded on first use, because its package is loaded after the workflow file. */
class LazyCommand implements MongodbCommand {
  readonly cursor: MongodbCommand["cursor"];
  readonly #document: MongodbDocument;
  #body: Uint8Array | null = null;

  constructor(document: MongodbDocument, cursor: MongodbCommand["cursor"]) {
    this.#document = document;
    this.cursor = cursor;
  }

  get body(): Uint8Array {
    this.#body ??= bson.module.serialize(this.#document, { ignoreUndefined: true });
    if (this.#body.length > MESSAGE_BYTES_MAX)
      throw new RangeError(`a command has at most ${MESSAGE_BYTES_MAX} bytes`);
    return this.#body;
  }
}

/** A described command. */
export class MongodbCall<Value> extends DescribedCall<MongodbCommand, Value> {
  override async prepare(): Promise<void> {
    await super.prepare();
    // Reports a document that cannot be encoded before the run.
    void this.command.body;
  }
}

export const MONGODB: TargetProtocol = {
  name: "mongodb",
  schemes: { mongodb: { port: 27_017, secure: false } },
  optionNames: ["user", "password", "database", "authSource", "tls"],
  load: () => bson.load(),
};

const FIND_OPTION_NAMES = ["limit", "skip", "sort", "projection", "batchSize"];

export class MongodbTarget {
  readonly #target: Target<MongodbCommand>;
  readonly #database: string;

  constructor(address: string, options: MongodbOptions = {}) {
    const protocol = {
      ...MONGODB,
      schemes: { mongodb: { port: 27_017, secure: secureOf(address, options) } },
    };
    this.#target = new Target(protocol, address, options, (host, now) => {
      return new MongodbConnection(host, login, now);
    });
    const { url } = this.#target;
    const login = loginOf(url, options);
    const database = pathOf(url, options.database);
    this.#database = database === "" ? "test" : database;
  }

  /** Any command of the server's manual: `{ ping: 1 }`; `value` is the whole reply. */
  command(document: MongodbDocument): MongodbCall<MongodbDocument> {
    const [name] = Object.keys(document ?? {});
    if (name === undefined) throw new TypeError("a command is a document: { ping: 1 }");
    return this.#call(name, document, (answer) => answer as MongodbDocument);
  }

  /** Returns all matching documents, in however many batches; `limit` bounds them. */
  find(
    collection: string,
    filter: MongodbDocument = {},
    options: FindOptions = {},
  ): MongodbCall<readonly MongodbDocument[]> {
    checkNames("find", options, FIND_OPTION_NAMES);
    const command = { find: nameOf(collection), filter, ...options };
    return this.#cursor(`find ${collection}`, command, options.limit);
  }

  /** Returns the first matching document; null when there is none. */
  findOne(collection: string, filter: MongodbDocument = {}): MongodbCall<MongodbDocument | null> {
    const command = { find: nameOf(collection), filter, limit: 1, singleBatch: true };
    return this.#call(`find ${collection}`, command, firstOf);
  }

  aggregate(
    collection: string,
    pipeline: readonly MongodbDocument[],
  ): MongodbCall<readonly MongodbDocument[]> {
    const command = { aggregate: nameOf(collection), pipeline, cursor: {} };
    return this.#cursor(`aggregate ${collection}`, command, undefined);
  }

  count(collection: string, query: MongodbDocument = {}): MongodbCall<number> {
    const command = { count: nameOf(collection), query };
    return this.#call(`count ${collection}`, command, (answer) => numberOf(answer, "n"));
  }

  insertOne(collection: string, document: MongodbDocument): MongodbCall<Written> {
    return this.insertMany(collection, [document]);
  }

  insertMany(collection: string, documents: readonly MongodbDocument[]): MongodbCall<Written> {
    if (documents.length === 0 || documents.length > DOCUMENTS_MAX)
      throw new RangeError(`insertMany takes 1 to ${DOCUMENTS_MAX} documents`);
    const command = { insert: nameOf(collection), documents };
    return this.#call(`insert ${collection}`, command, writtenOf);
  }

  updateOne(
    collection: string,
    filter: MongodbDocument,
    update: MongodbDocument,
    options: { readonly upsert?: boolean } = {},
  ): MongodbCall<Written> {
    return this.#update(collection, { q: filter, u: update, multi: false, ...options });
  }

  updateMany(
    collection: string,
    filter: MongodbDocument,
    update: MongodbDocument,
  ): MongodbCall<Written> {
    return this.#update(collection, { q: filter, u: update, multi: true });
  }

  #update(collection: string, update: MongodbDocument): MongodbCall<Written> {
    const command = { update: nameOf(collection), updates: [update] };
    return this.#call(`update ${collection}`, command, writtenOf);
  }

  deleteOne(collection: string, filter: MongodbDocument): MongodbCall<Written> {
    return this.#delete(collection, { q: filter, limit: 1 });
  }

  deleteMany(collection: string, filter: MongodbDocument): MongodbCall<Written> {
    return this.#delete(collection, { q: filter, limit: 0 });
  }

  #delete(collection: string, deletion: MongodbDocument): MongodbCall<Written> {
    const command = { delete: nameOf(collection), deletes: [deletion] };
    return this.#call(`delete ${collection}`, command, writtenOf);
  }

  ping(): MongodbCall<string> {
    return this.#call("ping", { ping: 1 }, () => "answers");
  }

  #cursor(
    title: string,
    command: MongodbDocument,
    limit: number | undefined,
  ): MongodbCall<readonly MongodbDocument[]> {
    const documentsMax = limit === undefined || limit === 0 ? Number.MAX_SAFE_INTEGER : limit;
    return new MongodbCall(this.#target, {
      command: this.#lazy(command, { database: this.#database, documentsMax }),
      title,
      decode: (documents) => documents as readonly MongodbDocument[],
    });
  }

  #call<Value>(
    title: string,
    command: MongodbDocument,
    decode: (answer: unknown) => Value,
  ): MongodbCall<Value> {
    return new MongodbCall(this.#target, { command: this.#lazy(command, null), title, decode });
  }

  #lazy(command: MongodbDocument, cursor: MongodbCommand["cursor"]): MongodbCommand {
    return new LazyCommand({ ...command, $db: this.#database }, cursor);
  }
}

function nameOf(collection: unknown): string {
  if (typeof collection === "string" && /^[^$\0]{1,235}$/.test(collection)) return collection;
  throw new TypeError(`${JSON.stringify(collection)} is not a collection name`);
}

function firstOf(answer: unknown): MongodbDocument | null {
  const { cursor } = answer as { readonly cursor?: { readonly firstBatch?: MongodbDocument[] } };
  return cursor?.firstBatch?.[0] ?? null;
}

function numberOf(answer: unknown, name: string): number {
  return Number((answer as MongodbDocument)[name] ?? 0);
}

function writtenOf(answer: unknown): Written {
  return { count: numberOf(answer, "n"), modified: numberOf(answer, "nModified") };
}

/** Determined before the rest of the address is parsed. */
function secureOf(address: string, { tls }: MongodbOptions): boolean {
  const query = typeof address === "string" && URL.canParse(address) ? new URL(address) : null;
  const parameter = query?.searchParams.get("tls") ?? query?.searchParams.get("ssl") ?? "false";
  return tls ?? parameter === "true";
}

const ADDRESS_OPTIONS = ["tls", "ssl", "authSource", "directConnection"];

function loginOf(url: URL, options: MongodbOptions): MongodbLogin {
  // Ignoring these would change their meaning: replica sets, write concerns, compression.
  const stray = [...url.searchParams.keys()].find((name) => !ADDRESS_OPTIONS.includes(name));
  if (stray !== undefined) throw new TypeError(`mongodb.target: "${stray}" is not supported`);
  const source = options.authSource ?? url.searchParams.get("authSource") ?? "admin";
  return { ...credentialsOf(url, options), source };
}
