/** Redis: points as entries of a stream, with a minimal client of our own. */

import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";
import { encodeCommand, RedisError, type RedisReply } from "../../protocols/redis/resp.ts";
import { RespReader } from "../../protocols/redis/resp-reader.ts";
import { definePush } from "../definition.ts";
import { pointBatches } from "../encoders/point-json.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";

/** Entries written before the first answer is awaited. */
const POINTS_MAX = 500;
/** Answers are ids of entries: some 30 bytes each. */
const REPLY_BYTES_MAX = 64 * 1_024;
const PORT = 6_379;
/** Transient errors: loading data, failing over, busy with a script, or without replicas. */
const PASSING: ReadonlySet<string> = new Set([
  ...["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "NOREPLICAS"],
  "OOM",
]);

export const redis = definePush({
  name: "redis",
  about: "Redis: a stream with an entry per point",
  target: "redis://127.0.0.1:6379",
  settings: {
    stream: { kind: "text", about: "the key of the stream", default: "hyperscale:points" },
    entries: {
      kind: "whole",
      about: "the stream is cut to about so many entries",
      default: "1000000",
    },
  },
  evidence: "real server",
  testedWith: "redis 7.0",
  transport: ({ settings: { entries, stream }, target }) => {
    const address = addressOf(target);
    return new SessionTransport({
      open: (signal) => opened(address, { stream, entries }, signal),
      isRefusal: (error) => error instanceof ServerError && !PASSING.has(error.code),
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

/** An error reply of the server. */
class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: string;

  constructor({ code, text }: RedisError) {
    super(text);
    this.code = code;
  }
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly login: readonly string[];
  readonly database: string;
}

function addressOf(target: string): Address {
  let url: URL;
  try {
    url = new URL(/^rediss?:\/\//.test(target) ? target : `redis://${target}`);
  } catch {
    throw new ReporterError("report redis: its address must be redis://HOST:PORT or rediss://…");
  }
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  return {
    host: url.hostname.replace(/^\[|\]$/g, "") || "127.0.0.1",
    port: url.port === "" ? PORT : Number(url.port),
    tls: url.protocol === "rediss:",
    login: password ? ["AUTH", ...(user ? [user] : []), password] : [],
    database: url.pathname.slice(1),
  };
}

async function opened(
  address: Address,
  { entries, stream }: { readonly stream: string; readonly entries: number },
  signal: AbortSignal,
): Promise<Session> {
  const connection = new RedisConnection(address);
  const destroy = (): void => connection.destroy();
  signal.addEventListener("abort", destroy, { once: true });
  const { database, login } = address;
  if (login.length > 0) await connection.perform([login]);
  if (database !== "") await connection.perform([["SELECT", database]]);
  const add = ["XADD", stream, "MAXLEN", "~", String(entries), "*", "point"];
  return {
    write: (body) => {
      const points = JSON.parse(body.toString("utf8")) as readonly unknown[];
      return connection.perform(points.map((point) => [...add, JSON.stringify(point)]));
    },
    close: async () => connection.destroy(),
    destroy,
  };
}

/** One list of commands at a time. */
class RedisConnection {
  readonly #socket: Socket;
  #reader = new RespReader({ reply: (value) => this.#onReply(value) }, REPLY_BYTES_MAX);
  #left = 0;
  #refusal: ServerError | null = null;
  #done: (error: Error | null) => void = () => {};

  constructor({ host, port, tls }: Address) {
    const name = host;
    this.#socket = tls ? connectSecure({ host, port, servername: name }) : connectPlain(port, host);
    this.#socket.on("data", (data: Buffer) => {
      if (!this.#reader.feed(data, data.length))
        this.#socket.destroy(new Error(this.#reader.problem ?? ""));
    });
    this.#socket.on("error", (error) => this.#done(error));
    this.#socket.on("close", () => this.#done(new Error("the connection was lost")));
  }

  perform(commands: readonly (readonly string[])[]): Promise<void> {
    this.#left = commands.length;
    this.#refusal = null;
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) reject(new Error("the connection was lost"));
      this.#done = (error) => (error === null ? resolve() : reject(error));
      this.#socket.write(Buffer.concat(commands.map(encodeCommand)));
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #onReply(value: RedisReply): void {
    if (value instanceof RedisError) this.#refusal ??= new ServerError(value);
    this.#left--;
    if (this.#left <= 0) this.#done(this.#refusal);
  }
}
