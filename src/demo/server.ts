/**
 * The demo target: a small web server that examples, tests and first runs can load without touching a public site. It
 * answers fast, slowly, wrongly, or not at all, as the path asks.
 *
 *     request → count → (delayed while the stall gate is closed) → handler
 *
 * On loopback by default. It keeps nothing per request but a counter per endpoint, and every wait and size of a query
 * is bounded (`limits.ts`). Tests that need a broken HTTP server use `hostile.ts`, because this one goes through
 * node:http and cannot break framing.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Certificate } from "./certificate.ts";
import { type Handler, handledEndpoints, serverEndpoints } from "./endpoints.ts";
import { Exchange } from "./exchange.ts";
import { KEEP_ALIVE_MS, MESSAGE_BYTES_MAX, WAIT_MS_MAX } from "./limits.ts";
import { StallGate } from "./stall.ts";

export const DEMO_PORT = 8089;
export const DEMO_HOST = "127.0.0.1";

interface DemoTargetOptions {
  readonly host?: string;
  /** 0 binds any free port. */
  readonly port?: number;
  /** Serves https with this certificate, such as one of `makeCertificate()`. */
  readonly tls?: Certificate;
}

interface DemoStats {
  readonly requests: number;
  /** Connections accepted. */
  readonly connections: number;
  /** By endpoint, such as "/users/:id"; unknown paths are counted under "other". */
  readonly paths: Readonly<Record<string, number>>;
}

export interface DemoTarget {
  /** Without a slash at the end: "http://127.0.0.1:8089". */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Delays every answer for `ms` from now. */
  stallOnce(ms: number): void;
  stats(): DemoStats;
  /** Ends every connection and frees the port. */
  close(): Promise<void>;
}

interface Route {
  readonly path: string;
  readonly methods: readonly string[];
  readonly handler: Handler;
  count: number;
}

/** Rejects with the system's error (EADDRINUSE, EACCES, …) when the address cannot be bound. */
export async function startDemoTarget(options: DemoTargetOptions = {}): Promise<DemoTarget> {
  const host = options.host ?? DEMO_HOST;
  const target = new Target(options.tls ?? null);
  const port = await target.listen(host, options.port ?? DEMO_PORT);
  return {
    url: `${options.tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`,
    host,
    port,
    stallOnce: (ms) => target.gate.stallOnce(ms),
    stats: () => target.stats(),
    close: () => target.close(),
  };
}

class Target {
  readonly gate = new StallGate();
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES_MAX });
  readonly #routes = new Map<string, Route>();
  readonly #other: Route;
  #connections = 0;

  constructor(certificate: Certificate | null) {
    const own: Readonly<Record<string, Handler>> = {
      "/stall": (exchange) => this.#onStall(exchange),
      "/stats": (exchange) => this.#onStats(exchange),
      "/ws": (exchange) => {
        exchange.response.setHeader("upgrade", "websocket");
        exchange.refuse(426, "connect with a WebSocket client");
      },
    };
    for (const { path, methods, handler } of handledEndpoints) this.#add(path, methods, handler);
    for (const { path, methods } of serverEndpoints) {
      this.#add(path, methods, own[path] ?? notFound);
    }
    this.#other = { path: "other", methods: [], handler: notFound, count: 0 };
    const settings = { keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true };
    this.#server =
      certificate === null
        ? createServer(settings)
        : createSecureServer({ ...settings, ...certificate });
    this.#server.on("request", (request, response) => this.#onRequest(request, response));
    this.#server.on("upgrade", (request, socket, head) => this.#onUpgrade(request, socket, head));
    this.#server.on("connection", () => {
      this.#connections += 1;
    });
  }

  /** A path with a parameter is stored under its prefix: "/users/:id" under "/users/". */
  #add(path: string, methods: readonly string[], handler: Handler): void {
    const key = path.replace(/:\w+$/, "");
    this.#routes.set(key, { path, methods, handler, count: 0 });
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, 4_096, () => {
        this.#server.off("error", reject);
        const address = this.#server.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.gate.stop();
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await closed;
  }

  stats(): DemoStats {
    const paths: Record<string, number> = {};
    let requests = 0;
    for (const { path, count } of [...this.#routes.values(), this.#other]) {
      if (count > 0) paths[path] = count;
      requests += count;
    }
    return { requests, connections: this.#connections, paths };
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "/";
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = mark < 0 ? "" : url.slice(mark + 1);
    const { route, parameter } = this.#find(path);
    route.count += 1;
    const exchange = new Exchange(request, response, { path, query, parameter });
    if (!this.gate.closed || route.path === "/stall") answer(route, exchange);
    else if (!this.gate.hold(() => answer(route, exchange))) {
      exchange.refuse(503, "too many answers are held back by the stall");
    }
  }

  #find(path: string): { readonly route: Route; readonly parameter: string } {
    const exact = this.#routes.get(path);
    if (exact !== undefined && !exact.path.includes(":")) return { route: exact, parameter: "" };
    const cut = path.lastIndexOf("/") + 1;
    const route = this.#routes.get(path.slice(0, cut));
    return route?.path.includes(":") === true
      ? { route, parameter: path.slice(cut) }
      : { route: this.#other, parameter: "" };
  }

  #onStall(exchange: Exchange): void {
    const ms = exchange.number("ms", 1_000, WAIT_MS_MAX);
    const afterMs = exchange.number("after", 0, WAIT_MS_MAX);
    const everyMs = exchange.number("every", 0, WAIT_MS_MAX);
    exchange.json(200, { stallMs: ms, afterMs, everyMs });
    // The answer that confirms the stall is sent before it begins.
    if (ms === 0) this.gate.stop();
    else if (everyMs > 0) this.gate.stallRepeatedly(ms, everyMs);
    else if (afterMs > 0) this.gate.stallLater(ms, afterMs);
    else this.gate.stallOnce(ms);
  }

  #onStats(exchange: Exchange): void {
    exchange.json(200, this.stats());
    if (exchange.query.get("reset") !== "1") return;
    for (const route of this.#routes.values()) route.count = 0;
    this.#other.count = 0;
    this.#connections = 0;
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { route } = this.#find((request.url ?? "").split("?")[0] ?? "");
    route.count += 1;
    if (route.path !== "/ws") {
      socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      client.on("message", (data, binary) => {
        const echo = (): void => client.send(data, { binary });
        if (!this.gate.closed) echo();
        else if (!this.gate.hold(echo)) client.close(1013, "stalled");
      });
      // A broken client loses its connection; ws has closed it by then.
      client.on("error", () => client.terminate());
    });
  }
}

function answer(route: Route, exchange: Exchange): void {
  const { methods } = route;
  if (methods.length > 0 && !methods.includes(exchange.request.method ?? "")) {
    exchange.response.setHeader("allow", methods.join(", "));
    exchange.refuse(405, `${route.path} takes ${methods.join(" and ")}`);
    return;
  }
  const done = route.handler(exchange);
  // Fails only when a client left in mid-body: its socket is gone, nothing to answer.
  if (done !== undefined) done.catch(() => exchange.response.destroy());
}

function notFound(exchange: Exchange): void {
  exchange.refuse(404, `no ${exchange.path} here; \`hyperscale demo-target\` lists the endpoints`);
}
