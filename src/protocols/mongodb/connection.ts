/** One connection to a MongoDB server: hello, a login if a user is given, one command at a time. */

import { randomBytes } from "node:crypto";
import type { Document } from "bson";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { LOGIN_ROUNDS_MAX } from "./limits.ts";
import { bson, encodeMessage, MessageParser } from "./message.ts";
import { Scram, type ScramMechanism } from "./scram.ts";

export interface MongodbCommand {
  /** BSON, encoded once. */
  readonly body: Uint8Array;
  /** Reads all batches of a cursor, up to this many documents. */
  readonly cursor: { readonly database: string; readonly documentsMax: number } | null;
}

export interface MongodbLogin {
  /** "" for no login. */
  readonly user: string;
  readonly password: string;
  readonly source: string;
}

type Call = CarriedCall<MongodbCommand>;

/** Documents of a cursor so far, and the last batch. */
interface Gathered {
  readonly documents: Document[];
}

export class MongodbConnection implements Connection<MongodbCommand> {
  readonly #host: ConnectionHost;
  readonly #login: MongodbLogin;
  readonly #socket: StreamSocket;
  readonly #parser: MessageParser;
  readonly #buffer: StreamBuffer;
  #scram: Scram | null = null;
  #rounds = 0;
  #open = false;
  #call: Call | null = null;
  #gathered: Gathered | null = null;
  #number = 0;
  #now = 0;

  constructor(host: ConnectionHost, login: MongodbLogin, now: number) {
    this.#host = host;
    this.#login = login;
    this.#parser = new MessageParser(this, host.settings.bodyBytesMax);
    this.#buffer = new StreamBuffer(this.#parser);
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(): void {
    const { source, user } = this.#login;
    const asked = user === "" ? {} : { saslSupportedMechs: `${source}.${user}` };
    this.#say({ hello: 1, $db: "admin", ...asked });
  }

  #say(document: Document): void {
    this.#socket.write(encodeMessage(bson.module.serialize(document), ++this.#number));
  }

  send(call: Call, now: number): void {
    this.#call = call;
    this.#gathered = null;
    const bytes = encodeMessage(call.command.body, ++this.#number);
    call.wrote(bytes.length, 1, now);
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    this.#call?.read(end, now);
    if (!this.#buffer.feed(buffer, end))
      this.#lost({ kind: "protocol", text: this.#parser.problem });
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    this.#now = now;
    const begun = this.#buffer.begun || this.#gathered !== null;
    this.#lost({ ...failure, text: begun ? `${failure.text} in mid-answer` : failure.text });
  }

  #lost(failure: ConnectionFailure): void {
    this.#call = null;
    this.#host.lost(failure, this.#now);
  }

  wants(bytes: number): void {
    this.#buffer.wanted = bytes;
  }

  message(document: Document, number: number): boolean {
    if (number !== this.#number) return false;
    if (!this.#open) {
      this.#greeted(document);
      return true;
    }
    const call = this.#call;
    if (call === null) return false;
    const refusal = refusalOf(document);
    if (refusal !== null) {
      this.#call = null;
      call.refused(refusal.code, refusal.text, this.#now);
    } else if (call.command.cursor === null) {
      this.#call = null;
      call.answered(document, this.#now);
    } else this.#part(call, document, call.command.cursor);
    return true;
  }

  /** Handles the replies to hello and to the login, in this order. */
  #greeted(document: Document): void {
    const refusal = refusalOf(document);
    const { password, source, user } = this.#login;
    const opening = this.#socket.times(this.#now);
    if (refusal !== null) this.#lost({ kind: "application", ...refusal, opening });
    else if (user === "" || (this.#scram !== null && document["done"] === true))
      this.#opened(document);
    else if (this.#scram === null) {
      const known = document["saslSupportedMechs"];
      const old = Array.isArray(known) && !known.includes("SCRAM-SHA-256");
      const mechanism: ScramMechanism = old ? "SCRAM-SHA-1" : "SCRAM-SHA-256";
      this.#scram = new Scram(mechanism, user, password, randomBytes(18).toString("base64"));
      const options = { skipEmptyExchange: true };
      const payload = this.#scram.first();
      this.#say({ saslStart: 1, mechanism, payload, options, $db: source });
    } else this.#challenged(this.#scram, document);
  }

  #challenged(scram: Scram, document: Document): void {
    const challenge = textOf(document["payload"]);
    const { source } = this.#login;
    const conversationId: unknown = document["conversationId"];
    // Send the proof first; a server that does not skip the empty exchange gets one.
    const payload =
      this.#rounds === 0 ? scram.proof(challenge) : scram.verified(challenge) ? EMPTY : null;
    if (payload === null || ++this.#rounds > LOGIN_ROUNDS_MAX)
      this.#lost({ kind: "protocol", text: "the login broke the rules of SCRAM" });
    else this.#say({ saslContinue: 1, conversationId, payload, $db: source });
  }

  #opened(document: Document): void {
    const last = textOf(document["payload"]);
    if (this.#scram !== null && last !== "" && !this.#scram.verified(last)) {
      this.#lost({ kind: "protocol", text: "the server did not prove that it knows the password" });
      return;
    }
    this.#open = true;
    this.#host.opened(this.#socket.times(this.#now), this.#now);
  }

  /** Handles the first or a further batch of a cursor. */
  #part(
    call: Call,
    document: Document,
    { database, documentsMax }: NonNullable<MongodbCommand["cursor"]>,
  ): void {
    const cursor = (document["cursor"] ?? {}) as Document;
    const part: unknown = cursor["firstBatch"] ?? cursor["nextBatch"];
    this.#gathered ??= { documents: [] };
    const { documents } = this.#gathered;
    if (Array.isArray(part)) documents.push(...(part as Document[]));
    const id = cursor["id"] as unknown;
    const over = id === undefined || id === null || String(id) === "0";
    if (over || documents.length >= documentsMax) {
      this.#call = null;
      this.#gathered = null;
      if (!over) this.#kill(database, cursor);
      call.answered(documents.slice(0, documentsMax), this.#now);
      return;
    }
    const collection = collectionOf(cursor);
    const body = bson.module.serialize({ getMore: longOf(id), collection, $db: database });
    const bytes = encodeMessage(body, ++this.#number);
    call.wrote(bytes.length, 1, this.#now);
    this.#socket.write(bytes);
  }

  /** Closes the cursor, with the flag that requests no reply. */
  #kill(database: string, cursor: Document): void {
    const command = { killCursors: collectionOf(cursor), cursors: [longOf(cursor["id"])] };
    const message = encodeMessage(bson.module.serialize({ ...command, $db: database }), 0);
    message.writeUInt32LE(MORE_TO_COME, 16);
    this.#socket.write(message);
  }
}

const EMPTY = Buffer.alloc(0);
/** Flag of a message that is not answered. */
const MORE_TO_COME = 2;

function collectionOf(cursor: Document): string {
  const name = String(cursor["ns"] ?? "");
  return name.slice(name.indexOf(".") + 1);
}

/** Cursor ids have 64 bits, including those that were decoded as plain numbers. */
function longOf(id: unknown): unknown {
  return typeof id === "number" ? bson.module.Long.fromNumber(id) : id;
}

function textOf(payload: unknown): string {
  if (payload instanceof Uint8Array) return Buffer.from(payload).toString("utf8");
  const { buffer } = (payload ?? {}) as { readonly buffer?: unknown };
  return buffer instanceof Uint8Array ? Buffer.from(buffer).toString("utf8") : "";
}

interface Refusal {
  readonly code: string;
  readonly text: string;
}

/** Failure of a command or of its writes. */
function refusalOf(document: Document): Refusal | null {
  const [failed] = (document["writeErrors"] ?? []) as Document[];
  const error = document["ok"] === 1 ? failed : document;
  if (error === undefined) return null;
  const name: unknown = error["codeName"] ?? NAMES[Number(error["code"])] ?? error["code"];
  return { code: String(name ?? "ERROR"), text: String(error["errmsg"] ?? "the command failed") };
}

/** Errors of single writes have no name. */
const NAMES: Readonly<Record<number, string>> = {
  ...{ 11000: "DuplicateKey", 121: "DocumentValidationFailure", 66: "ImmutableField" },
};
