/** One connection to a Redis server: it carries one call at a time, of one command or a pipeline. */

import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { encodeCommand, type RedisArgument, RedisError, type RedisReply } from "./resp.ts";
import { RespReader } from "./resp-reader.ts";

/** Encoded commands. */
export interface RedisCommand {
  readonly bytes: Buffer;
  /** Number of commands, each with one reply. */
  readonly commands: number;
}

/** Commands sent before the first call. */
export interface RedisLogin {
  readonly commands: readonly (readonly RedisArgument[])[];
}

export class RedisConnection implements Connection<RedisCommand> {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  readonly #reader: RespReader;
  readonly #login: RedisLogin;
  /** Outstanding replies to the login; -1 when it is over. */
  #loginLeft = -1;
  #call: CarriedCall<RedisCommand> | null = null;
  /** Replies of a pipeline; a single command needs no list. */
  #replies: RedisReply[] = [];
  #refusal: RedisError | null = null;
  #now = 0;

  constructor(host: ConnectionHost, login: RedisLogin, now: number) {
    this.#host = host;
    this.#login = login;
    this.#reader = new RespReader(this, host.settings.bodyBytesMax);
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    const { commands } = this.#login;
    this.#loginLeft = commands.length;
    if (commands.length === 0) this.#opened(now);
    else this.#socket.write(Buffer.concat(commands.map(encodeCommand)));
  }

  #opened(now: number): void {
    this.#loginLeft = -1;
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: CarriedCall<RedisCommand>, now: number): void {
    const { bytes, commands } = call.command;
    this.#call = call;
    this.#refusal = null;
    this.#reader.keeps = call.keep;
    call.wrote(bytes.length, commands, now);
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    this.#call?.read(end, now);
    if (!this.#reader.feed(buffer, end))
      this.#lost({ kind: "protocol", text: this.#reader.problem ?? "the reply is malformed" }, now);
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    const begun = !this.#reader.between || this.#replies.length > 0;
    if (failure.kind !== "reset" || this.#call === null) this.#lost(failure, now);
    else this.#lost({ ...failure, text: `${failure.text} ${whenOf(begun)}` }, now);
  }

  #lost(failure: ConnectionFailure, now: number): void {
    this.#call = null;
    this.#host.lost(failure, now);
  }

  reply(value: RedisReply): void {
    if (this.#loginLeft > 0) this.#loggedIn(value);
    else if (this.#call === null)
      this.#lost({ kind: "protocol", text: "an unexpected reply" }, this.#now);
    else this.#answer(this.#call, value);
  }

  #loggedIn(value: RedisReply): void {
    if (value instanceof RedisError) {
      const { code, text } = value;
      const opening = this.#socket.times(this.#now);
      this.#lost({ kind: "application", code, text, opening }, this.#now);
    } else if (--this.#loginLeft === 0) this.#opened(this.#now);
  }

  #answer(call: CarriedCall<RedisCommand>, value: RedisReply): void {
    if (value instanceof RedisError) this.#refusal ??= value;
    const { commands } = call.command;
    if (commands > 1) {
      if (this.#replies.push(value) < commands) return;
      value = this.#replies;
      this.#replies = [];
    }
    this.#call = null;
    const refusal = this.#refusal;
    if (refusal === null) call.answered(value, this.#now);
    else call.refused(refusal.code, refusal.text, this.#now);
  }
}

function whenOf(begun: boolean): string {
  return begun ? "in mid-answer" : "without an answer";
}
