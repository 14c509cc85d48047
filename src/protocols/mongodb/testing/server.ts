/**
 * Our own MongoDB server, because neither Debian nor npm provides one: OP_MSG, SCRAM-SHA-256, documents in memory,
 * equality as the only condition. A test runs the official `mongodb` driver against it, so that it is checked by more
 * than our own client. HYPERSCALE_TEST_MONGODB_URL selects a real server.
 */

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import net from "node:net";
import tls from "node:tls";
import { type Document, deserialize, Long, ObjectId, serialize } from "bson";
import type { CountingServer } from "../../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";
import { encodeMessage } from "../message.ts";

export const USER = { name: "ada", password: "se,cret" };

export interface MongodbServer extends CountingServer {
  readonly url: string;
  documents(collection: string): readonly Document[];
}

interface Options {
  /** Accepts known users only. */
  readonly secured?: boolean;
  readonly tls?: tls.SecureContextOptions;
}

/** Counts pings as served. */
export async function startMongodb(options: Options = {}): Promise<MongodbServer> {
  const state = new State();
  const sockets = new Set<net.Socket>();
  const serve = (socket: net.Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
    const session = new ServerSession(state, options.secured === true);
    onMessages(socket, (document, number) => {
      const answer = session.answer(document);
      if (answer !== null) socket.write(answering(answer, number));
    });
  };
  const server =
    options.tls === undefined ? net.createServer(serve) : tls.createServer(options.tls, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 1_024, resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    url: `mongodb://127.0.0.1:${port}/shop`,
    documents: (collection) => state.of(collection),
    served: async () => state.pings,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function onMessages(socket: net.Socket, use: (document: Document, number: number) => void): void {
  let kept = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    kept = Buffer.concat([kept, bytes]);
    while (kept.length >= 16 && kept.length >= kept.readInt32LE(0)) {
      const message = kept.subarray(0, kept.readInt32LE(0));
      kept = kept.subarray(message.length);
      const number = message.readInt32LE(4);
      // Drivers begin with the message of old servers, which has no `$db`.
      if (message.readInt32LE(12) === 2004) use({ hello: 1, legacy: true }, number);
      else use(documentOf(message), number);
    }
  });
}

/** The body and its document sequences. */
function documentOf(message: Buffer): Document {
  let at = 20;
  let body: Document = {};
  const beside: Document = {};
  while (at < message.length) {
    const kind = message[at];
    const length = message.readInt32LE(at + 1);
    if (kind === 0) body = deserialize(message.subarray(at + 1, at + 1 + length));
    else {
      const end = message.indexOf(0, at + 5);
      const documents: Document[] = [];
      for (let from = end + 1; from < at + 1 + length; from += message.readInt32LE(from))
        documents.push(deserialize(message.subarray(from, from + message.readInt32LE(from))));
      beside[message.toString("utf8", at + 5, end)] = documents;
    }
    at += 1 + length;
  }
  return { ...body, ...beside };
}

function answering(document: Document, number: number): Buffer {
  if (document["legacy"] === true) return legacyAnswer(document, number);
  const message = encodeMessage(serialize(document), 1);
  message.writeInt32LE(number, 8);
  return message;
}

/** OP_REPLY: flags, no cursor, one document. */
function legacyAnswer(document: Document, number: number): Buffer {
  const body = serialize(document);
  const head = Buffer.alloc(36);
  head.writeInt32LE(36 + body.length, 0);
  head.writeInt32LE(number, 8);
  head.writeInt32LE(1, 12);
  head.writeInt32LE(8, 16);
  head.writeInt32LE(1, 32);
  return Buffer.concat([head, body]);
}

class State {
  pings = 0;
  cursors = 0;
  readonly rest = new Map<string, Document[]>();
  readonly #collections = new Map<string, Document[]>();

  of(collection: string): Document[] {
    const known = this.#collections.get(collection);
    if (known !== undefined) return known;
    const made: Document[] = [];
    this.#collections.set(collection, made);
    return made;
  }
}

class ServerSession {
  readonly #state: State;
  #known: boolean;
  #authPrefix = "";

  constructor(state: State, secured: boolean) {
    this.#state = state;
    this.#known = !secured;
  }

  /** Null where no reply is requested. */
  answer(command: Document): Document | null {
    const [name = ""] = Object.keys(command);
    if (name === "hello" || name === "isMaster" || name === "ismaster") return hello(command);
    if (name === "saslStart" || name === "saslContinue") return this.#login(command);
    if (name === "killCursors") return null;
    if (!this.#known) return refused(13, "Unauthorized", `command ${name} requires a login`);
    switch (name) {
      case "ping":
        this.#state.pings++;
        return OK;
      case "endSessions":
        return OK;
      case "insert":
        return this.#insert(command);
      case "find":
        return this.#find(command);
      case "getMore":
        return this.#batch(String(command["getMore"]), command, "nextBatch");
      case "count":
        return { n: matching(this.#state, command["count"], command["query"]).length, ok: 1 };
      case "update":
        return this.#update(command);
      case "delete":
        return this.#delete(command);
      default:
        return refused(59, "CommandNotFound", `no such command: '${name}'`);
    }
  }

  #insert(command: Document): Document {
    const all = this.#state.of(command["insert"]);
    const given = command["documents"] as Document[];
    const clash = given.findIndex(({ _id }) => all.some((known) => same(known["_id"], _id)));
    const taken = clash < 0 ? given : given.slice(0, clash);
    all.push(...taken.map((document) => ({ _id: new ObjectId(), ...document })));
    if (clash < 0) return { n: taken.length, ok: 1 };
    const error = { index: clash, code: 11000, errmsg: "E11000 duplicate key error" };
    return { n: taken.length, writeErrors: [error], ok: 1 };
  }

  #find(command: Document): Document {
    const found = matching(this.#state, command["find"], command["filter"]);
    const limit = Number(command["limit"] ?? 0);
    const id = String(++this.#state.cursors);
    this.#state.rest.set(id, limit === 0 ? found : found.slice(0, limit));
    return this.#batch(id, { ...command, collection: command["find"] }, "firstBatch");
  }

  #batch(id: string, command: Document, name: string): Document {
    const rest = this.#state.rest.get(id);
    if (rest === undefined) return refused(43, "CursorNotFound", `cursor id ${id} not found`);
    const part = rest.splice(0, Number(command["batchSize"] ?? 101));
    if (rest.length === 0) this.#state.rest.delete(id);
    const next = Long.fromString(rest.length === 0 ? "0" : id);
    return { cursor: { id: next, ns: `shop.${command["collection"]}`, [name]: part }, ok: 1 };
  }

  #update(command: Document): Document {
    const [{ multi, q, u, upsert } = {}] = command["updates"] as Document[];
    const found = matching(this.#state, command["update"], q);
    const changed = multi === true ? found : found.slice(0, 1);
    if (changed.length === 0 && upsert === true)
      this.#state.of(command["update"]).push({ _id: new ObjectId(), ...q, ...u["$set"] });
    for (const document of changed) {
      Object.assign(document, u["$set"]);
      for (const [field, by] of Object.entries(u["$inc"] ?? {}))
        document[field] = Number(document[field] ?? 0) + Number(by);
    }
    return {
      n: Math.max(changed.length, upsert === true ? 1 : 0),
      nModified: changed.length,
      ok: 1,
    };
  }

  #delete(command: Document): Document {
    const [{ limit, q } = {}] = command["deletes"] as Document[];
    const all = this.#state.of(command["delete"]);
    const deleted = matching(this.#state, command["delete"], q).slice(
      0,
      limit === 1 ? 1 : undefined,
    );
    for (const document of deleted) all.splice(all.indexOf(document), 1);
    return { n: deleted.length, ok: 1 };
  }

  /** Server side of SCRAM-SHA-256. */
  #login(command: Document): Document {
    const text = Buffer.from(command["payload"].buffer).toString("utf8");
    if (command["saslStart"] !== undefined) {
      const [, bare = ""] = /^n,,(.*)$/s.exec(text) ?? [];
      const [, nonce = ""] = /,r=(.*)$/s.exec(bare) ?? [];
      const first = `r=${nonce}${randomBytes(9).toString("base64")},s=${SALT.toString("base64")},i=4096`;
      this.#authPrefix = `${bare},${first}`;
      return { conversationId: 1, done: false, payload: Buffer.from(first), ok: 1 };
    }
    const [, withoutProof = "", proof = ""] = /^(.*),p=(.*)$/s.exec(text) ?? [];
    const authMessage = `${this.#authPrefix},${withoutProof}`;
    const salted = pbkdf2Sync(USER.password, SALT, 4096, 32, "sha256");
    const clientKey = hmac(salted, "Client Key");
    const signed = hmac(createHash("sha256").update(clientKey).digest(), authMessage);
    const expected = clientKey.map((byte, at) => byte ^ (signed[at] ?? 0));
    const named = this.#authPrefix.startsWith(`n=${USER.name},`);
    if (!named || Buffer.from(expected).toString("base64") !== proof)
      return refused(18, "AuthenticationFailed", "Authentication failed.");
    this.#known = true;
    const signature = hmac(hmac(salted, "Server Key"), authMessage).toString("base64");
    return { conversationId: 1, done: true, payload: Buffer.from(`v=${signature}`), ok: 1 };
  }
}

const SALT = Buffer.from("a pinch of salt!");
const OK: Document = { ok: 1 };

const hmac = (key: Uint8Array, text: string): Buffer =>
  createHmac("sha256", key).update(text).digest();

const refused = (code: number, codeName: string, errmsg: string): Document => ({
  ...{ ok: 0, code, codeName, errmsg },
});

/** Reply of a standalone server. */
const hello = ({ legacy = false, saslSupportedMechs }: Document): Document => ({
  ...(saslSupportedMechs === undefined ? {} : { saslSupportedMechs: ["SCRAM-SHA-256"] }),
  ...(legacy === true ? { legacy } : {}),
  ...{ isWritablePrimary: true, ismaster: true, maxWireVersion: 21, minWireVersion: 0 },
  ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000 },
  ...{ maxWriteBatchSize: 100_000, ok: 1 },
});

function matching(state: State, collection: string, filter: Document = {}): Document[] {
  const wanted = Object.entries(filter);
  return state
    .of(collection)
    .filter((document) => wanted.every(([field, value]) => same(document[field], value)));
}

function same(one: unknown, other: unknown): boolean {
  return other !== undefined && String(one) === String(other);
}

/** Answers hello for every client, and invokes the callback for each command after that. */
export function listenCommands(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    onMessages(socket, (document, number) => {
      if ("hello" in document) socket.write(answering(hello(document), number));
      else onCall(socket);
    });
  });
}
