/**
 * One connection to a NATS server; it carries many concurrent calls. Responses to requests arrive at its own inbox,
 * distinguished by a token; messages of subscriptions wait until they are received.
 */

import { randomBytes } from "node:crypto";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { Inbox } from "../target/inbox.ts";
import { StreamBuffer } from "../target/stream-buffer.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { encodePublish, type NatsMessage, NatsParser, type NatsPublish } from "./wire.ts";

export type NatsCommand =
  | { readonly kind: "publish"; readonly bytes: Buffer; readonly confirm: boolean }
  | { readonly kind: "request"; readonly message: NatsPublish }
  | {
      readonly kind: "subscribe";
      readonly subject: string;
      readonly queue: string;
      /** Outlives the iteration in which it was created. */
      readonly kept: boolean;
    }
  | { readonly kind: "receive"; readonly subject: string }
  | { readonly kind: "ping" };

export interface NatsLogin {
  readonly user?: string;
  readonly pass?: string;
  readonly auth_token?: string;
}

interface NatsAccess {
  readonly login: NatsLogin;
  /** TLS after the greeting in any case; otherwise only when the server requires it. */
  readonly tls: boolean;
}

/** Required fields of INFO. */
interface NatsGreeting {
  readonly tls_required?: boolean;
  readonly tls_available?: boolean;
}

type Call = CarriedCall<NatsCommand>;

const PING = Buffer.from("PING\r\n");
const PONG = Buffer.from("PONG\r\n");
/** Subscription id of the response inbox; those of subscriptions start at 2. */
const INBOX_SID = "1";
const NO_RESPONDERS = 503;
/** Subscriptions of one connection. */
const SUBSCRIPTIONS_MAX = 1_024;

export class NatsConnection implements Connection<NatsCommand> {
  readonly #host: ConnectionHost;
  readonly #login: NatsLogin;
  /** TLS is required, whatever the server offers. */
  readonly #wantsTls: boolean;
  #greeting: NatsGreeting | null = null;
  readonly #socket: StreamSocket;
  readonly #parser: NatsParser;
  readonly #buffer: StreamBuffer;
  /** Consumers of the next PONGs, in order: the login, a call, or one that has finished before. */
  readonly #pongs: (Call | "login" | "ended")[] = [];
  readonly #requests = new Map<string, Call>();
  readonly #inboxPrefix = `_INBOX.${randomBytes(9).toString("hex")}`;
  #inboxOpen = false;
  #token = 0;
  /** By subject. */
  readonly #subscriptions = new Map<string, { readonly sid: string; readonly kept: boolean }>();
  #sid = 1;
  readonly #inbox = new Inbox<NatsMessage>();
  #now = 0;

  constructor(host: ConnectionHost, { login, tls }: NatsAccess, now: number) {
    this.#host = host;
    this.#login = login;
    this.#wantsTls = tls;
    this.#parser = new NatsParser(this, host.settings.bodyBytesMax, (bytes) => {
      this.#buffer.wanted = bytes;
    });
    this.#buffer = new StreamBuffer(this.#parser);
    this.#socket = new StreamSocket(host, this, now);
  }

  /** The server speaks first, in plain text; TLS begins after its greeting. */
  streamOpen(): void {
    if (this.#greeting !== null) this.#logIn();
  }

  info(text: string): void {
    if (this.#greeting !== null) return;
    const greeting = greetingOf(text);
    if (greeting === null) {
      this.#parser.problem = "the greeting is malformed";
      return;
    }
    this.#greeting = greeting;
    if (greeting.tls_required === true || (this.#wantsTls && greeting.tls_available === true))
      this.#socket.secure();
    else if (this.#wantsTls)
      this.#lost({ kind: "tls", text: "the server does not speak TLS" }, this.#now);
    else this.#logIn();
  }

  #logIn(): void {
    const options = {
      verbose: false,
      pedantic: false,
      headers: true,
      no_responders: true,
      echo: true,
      lang: "hyperscale",
      version: "1",
      protocol: 1,
      ...this.#login,
    };
    this.#pongs.push("login");
    this.#socket.write(Buffer.from(`CONNECT ${JSON.stringify(options)}\r\nPING\r\n`));
  }

  send(call: Call, now: number): void {
    const { command } = call;
    switch (command.kind) {
      case "publish":
        this.#publish(call, command.bytes, command.confirm, now);
        return;
      case "request":
        this.#request(call, command.message, now);
        return;
      case "subscribe":
        this.#subscribe(call, command, now);
        return;
      case "receive":
        this.#receive(call, command.subject, now);
        return;
      case "ping":
        this.#pongs.push(call);
        call.wrote(PING.length, 1, now);
        this.#socket.write(PING);
    }
  }

  /** Without confirmation, the call finishes when the bytes were handed to the network. */
  #publish(call: Call, bytes: Buffer, confirm: boolean, now: number): void {
    call.wrote(bytes.length + (confirm ? PING.length : 0), 1, now);
    if (!confirm) {
      this.#socket.deliver(bytes, call);
      return;
    }
    this.#pongs.push(call);
    this.#socket.write(Buffer.concat([bytes, PING]));
  }

  #request(call: Call, message: NatsPublish, now: number): void {
    const token = `${++this.#token}`;
    const bytes = encodePublish(message, `${this.#inboxPrefix}.${token}`);
    this.#requests.set(token, call);
    call.wrote(bytes.length, 1, now);
    if (this.#inboxOpen) this.#socket.write(bytes);
    else {
      this.#inboxOpen = true;
      const subscribe = Buffer.from(`SUB ${this.#inboxPrefix}.* ${INBOX_SID}\r\n`);
      this.#socket.write(Buffer.concat([subscribe, bytes]));
    }
  }

  #subscribe(
    call: Call,
    { kept, queue, subject }: Extract<NatsCommand, { kind: "subscribe" }>,
    now: number,
  ): void {
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      const text = `more than ${SUBSCRIPTIONS_MAX} subscriptions`;
      call.failed({ kind: "resources", text }, now);
      return;
    }
    const known = this.#subscriptions.get(subject);
    const sid = known?.sid ?? `${++this.#sid}`;
    this.#subscriptions.set(subject, { sid, kept });
    const line =
      known === undefined ? `SUB ${subject}${queue === "" ? "" : ` ${queue}`} ${sid}\r\n` : "";
    const bytes = Buffer.from(`${line}PING\r\n`);
    this.#pongs.push(call);
    call.wrote(bytes.length, 1, now);
    this.#socket.write(bytes);
  }

  #receive(call: Call, subject: string, now: number): void {
    const sid = this.#subscriptions.get(subject)?.sid;
    if (sid === undefined) {
      const text = `not subscribed to ${subject} in this iteration: perform subscribe first`;
      call.failed({ kind: "exception", text }, now);
      return;
    }
    this.#inbox.receive(call, (message) => message.sid === sid, now);
  }

  /** A late response is recognised by its token, and a late message is kept for the next receiver. */
  forget(call: Call): boolean {
    for (const [token, waiting] of this.#requests)
      if (waiting === call) return this.#requests.delete(token);
    const at = this.#pongs.indexOf(call);
    if (at >= 0) this.#pongs[at] = "ended";
    return at >= 0 || this.#inbox.forget(call);
  }

  reset(): void {
    const ended = [...this.#subscriptions].filter(([, { kept }]) => !kept);
    for (const [subject, { sid }] of ended) {
      this.#subscriptions.delete(subject);
      this.#inbox.drop((message) => message.sid === sid);
    }
    if (ended.length > 0)
      this.#socket.write(Buffer.from(ended.map(([, { sid }]) => `UNSUB ${sid}\r\n`).join("")));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    if (!this.#buffer.feed(buffer, end))
      this.#lost({ kind: "protocol", text: this.#parser.problem ?? "malformed" }, now);
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    const text = this.#buffer.begun ? `${failure.text} in mid-answer` : failure.text;
    this.#lost({ ...failure, text }, now);
  }

  #lost(failure: ConnectionFailure, now: number): void {
    this.#host.lost(failure, now);
  }

  message(message: NatsMessage, bytes: number): void {
    if (message.sid !== INBOX_SID) {
      this.#inbox.arrived(message, bytes, this.#now);
      return;
    }
    const token = message.subject.slice(this.#inboxPrefix.length + 1);
    const call = this.#requests.get(token);
    if (call === undefined) return;
    this.#requests.delete(token);
    call.read(bytes, this.#now);
    if (message.status !== 0) call.status(message.status);
    if (message.status === NO_RESPONDERS && message.data.length === 0)
      call.refused("NO_RESPONDERS", "no responders for that subject", this.#now);
    else call.answered(message, this.#now);
  }

  pong(): void {
    const call = this.#pongs.shift();
    if (call === undefined)
      this.#lost({ kind: "protocol", text: "a PONG without PING" }, this.#now);
    else if (call === "login") {
      this.#host.opened(this.#socket.times(this.#now), this.#now);
    } else if (call !== "ended") {
      call.read(PONG.length, this.#now);
      call.answered(null, this.#now);
    }
  }

  ping(): void {
    this.#socket.write(PONG);
  }

  ok(): void {}

  /** Permission violations fail the oldest unconfirmed call; all other errors close the connection. */
  error(text: string): void {
    const code = codeOf(text);
    const at = this.#pongs.findIndex((call) => typeof call === "object");
    const call = this.#pongs[at];
    if (code === "PERMISSIONS_VIOLATION" && typeof call === "object") {
      this.#pongs[at] = "ended";
      call.refused(code, text, this.#now);
      return;
    }
    const opening = this.#socket.times(this.#now);
    this.#lost({ kind: "application", code, text, opening }, this.#now);
  }
}

/** Null for an invalid greeting. */
function greetingOf(text: string): NatsGreeting | null {
  try {
    const greeting: unknown = JSON.parse(text);
    return typeof greeting === "object" ? greeting : null;
  } catch {
    return null;
  }
}

/** "Authorization Violation" → AUTHORIZATION_VIOLATION; without its details. */
function codeOf(text: string): string {
  const words = /^[A-Za-z]+(?: [A-Za-z]+)?/.exec(text)?.[0] ?? "ERROR";
  return words.toUpperCase().replace(" ", "_");
}
