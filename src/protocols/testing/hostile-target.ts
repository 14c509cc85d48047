/**
 * \n The hostile target: a raw TCP server that answers HTTP badly, one way per path. It may cost a client under test
 * one connection, but never memory and never a hang.
 *
 *     GET /infinite-headers  →  the behaviour of that name, for as long as the client stays
 *
 * Endless behaviours write only as fast as the client reads, so the server itself stays small. `onAccept` selects
 * behaviours that act before a request is read.
 */

import { createServer, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { DEMO_HOST } from "../../demo/server.ts";

export type AcceptBehaviour = "serve" | "close" | "reset" | "hang" | "garbage";

interface HostileTargetOptions {
  readonly host?: string;
  /** 0, the default, selects any free port. */
  readonly port?: number;
  readonly onAccept?: AcceptBehaviour;
  /** Pause between two bytes of a drip. */
  readonly dripMs?: number;
}

export interface HostileTarget {
  readonly url: string;
  readonly port: number;
  /** Connections accepted so far. */
  connections(): number;
  /** Requests read so far, by behaviour. */
  served(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

/** First bytes of a request that are kept to find its path; the rest is read and dropped. */
const HEAD_BYTES_MAX = 16 * 1024;
const DRIP_MS = 20;
const ENDLESS_WRITE_BYTES = 16 * 1024;

type Behaviour = (socket: Socket, dripMs: number) => void;

const OK = "HTTP/1.1 200 OK\r\n";
const pad = "x".repeat(1_000);
const chunkedHead = `${OK}transfer-encoding: chunked\r\n\r\n`;

/** Decompresses to a thousand times its size. */
const BOMB_BYTES = 64 * 1024 * 1024;
let bomb: Buffer | null = null;

export const hostileBehaviours = {
  // Endless.
  "infinite-headers": (socket) => endless(socket, OK, (n) => `x-${n}: ${pad}\r\n`),
  "infinite-header-line": (socket) => endless(socket, `${OK}x: `, () => pad),
  "infinite-status-line": (socket) => endless(socket, "HTTP/1.1 200 ", () => pad),
  "infinite-body": (socket) => endless(socket, `${OK}connection: close\r\n\r\n`, () => pad),
  "infinite-chunks": (socket) => endless(socket, chunkedHead, () => `3e8\r\n${pad}\r\n`),
  "infinite-chunk-extension": (socket) => endless(socket, `${chunkedHead}1;x=`, () => pad),
  "infinite-trailers": (socket) => endless(socket, `${chunkedHead}0\r\n`, (n) => `x-${n}: y\r\n`),
  "infinite-continue": (socket) => endless(socket, "", () => "HTTP/1.1 100 Continue\r\n\r\n"),
  "header-drip": (socket, dripMs) => drip(socket, `${OK}x: `, dripMs),
  "body-drip": (socket, dripMs) => drip(socket, `${OK}content-length: 1000000\r\n\r\n`, dripMs),
  hang: () => undefined,
  "hang-after-head": (socket) => socket.write(`${OK}content-length: 10\r\n\r\n`),
  // Invalid framing.
  "huge-chunk": says(`transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nabc`),
  "overflowing-chunk": says("transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc"),
  "bad-chunk": says("transfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n"),
  "chunk-without-end": says("transfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n"),
  "negative-chunk": says("transfer-encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n"),
  "huge-length": says("content-length: 99999999999999999999\r\n\r\nabc"),
  "negative-length": says("content-length: -1\r\n\r\nabc"),
  "word-length": says("content-length: three\r\n\r\nabc"),
  "two-lengths": says("content-length: 3\r\ncontent-length: 4\r\n\r\nabcd"),
  "length-and-chunked": says(
    "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  ),
  "space-before-colon": says("content-length : 3\r\n\r\nabc"),
  "header-without-colon": says("this is no header\r\ncontent-length: 3\r\n\r\nabc"),
  "null-in-header": says("x: a\0b\r\ncontent-length: 3\r\n\r\nabc"),
  "extra-answer": says(`content-length: 3\r\n\r\nabc${OK}content-length: 8\r\n\r\nsmuggled`),
  "gzip-bomb": (socket) => {
    bomb ??= gzipSync(Buffer.alloc(BOMB_BYTES));
    socket.write(`${OK}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  },
  "bad-gzip": says("content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc"),
  // Not HTTP at all.
  garbage: (socket) => socket.end("\x00\xff\x13rubbish, not HTTP\r\n\r\n"),
  "bad-status": (socket) => socket.end("HTTP/1.1 2x0 Hm\r\ncontent-length: 0\r\n\r\n"),
  "bad-version": (socket) => socket.end("HTTP/9.9 200 OK\r\ncontent-length: 0\r\n\r\n"),
  "no-head": (socket) => socket.end("<html>an answer of HTTP/0.9</html>\n"),
  // Closing early.
  close: (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  "half-head": (socket) => socket.end(`${OK}content-le`),
  "half-body": (socket) => socket.end(`${OK}content-length: 100\r\n\r\nabc`),
  "half-chunk": (socket) => socket.end(`${chunkedHead}64\r\nabc`),
  "reset-mid-body": (socket) =>
    socket.write(`${OK}content-length: 100\r\n\r\nabc`, () => socket.resetAndDestroy()),
  // A valid response, to follow a bad one.
  fine: says("content-length: 3\r\n\r\nabc"),
} satisfies Readonly<Record<string, Behaviour>>;

export type HostileBehaviour = keyof typeof hostileBehaviours;

function says(rest: string): Behaviour {
  return (socket) => socket.write(OK + rest, "latin1");
}

function endless(socket: Socket, head: string, piece: (index: number) => string): void {
  let index = 0;
  socket.write(head);
  const more = (): void => {
    // One write of many pieces per turn; `drain` or the next turn triggers the next.
    let pieces = "";
    while (pieces.length < ENDLESS_WRITE_BYTES) pieces += piece(index++);
    if (socket.writable && socket.write(pieces)) setImmediate(more);
  };
  socket.on("drain", more);
  more();
}

function drip(socket: Socket, head: string, dripMs: number): void {
  socket.write(head);
  const timer = setInterval(() => socket.write("x"), dripMs);
  socket.on("close", () => clearInterval(timer));
}

export async function startHostileTarget(
  options: HostileTargetOptions = {},
): Promise<HostileTarget> {
  const { host = DEMO_HOST, port = 0, onAccept = "serve", dripMs = DRIP_MS } = options;
  const sockets = new Set<Socket>();
  const counts: Record<string, number> = {};
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // The client may leave at any time; that is the point.
    socket.on("error", () => socket.destroy());
    if (!accepted(socket, onAccept)) return;
    onRequests(socket, (name) => {
      counts[name] = (counts[name] ?? 0) + 1;
      behaviourOf(name)(socket, dripMs);
    });
  });
  const bound = await listen(server, host, port);
  return {
    url: `http://${host}:${bound}`,
    port: bound,
    connections: () => connections,
    served: () => ({ ...counts }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function accepted(socket: Socket, behaviour: AcceptBehaviour): boolean {
  if (behaviour === "close") socket.end();
  else if (behaviour === "reset") socket.resetAndDestroy();
  else if (behaviour === "garbage") socket.write("\x00\xff not asked for\r\n\r\n");
  // Keep reading, so that the client's close is noticed.
  if (behaviour !== "serve") socket.resume();
  return behaviour === "serve";
}

function behaviourOf(name: string): Behaviour {
  const known: Readonly<Record<string, Behaviour>> = hostileBehaviours;
  return Object.hasOwn(known, name) ? (known[name] ?? missing) : missing;
}

function missing(socket: Socket): void {
  socket.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
}

/** Invokes the callback with the first path segment of each request head; bodies are not expected. */
function onRequests(socket: Socket, onRequest: (behaviour: string) => void): void {
  let head = "";
  socket.on("data", (data) => {
    head += data.toString("latin1");
    for (let end = head.indexOf("\r\n\r\n"); end >= 0; end = head.indexOf("\r\n\r\n")) {
      const [, name] = /^\S+ (?:http:\/\/[^/]+)?\/([\w-]*)/.exec(head) ?? [];
      head = head.slice(end + 4);
      onRequest(name ?? "");
    }
    if (head.length > HEAD_BYTES_MAX) socket.destroy();
  });
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
