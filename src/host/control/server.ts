/**
 * The control interface of a service: one guarded HTTP server for agents, ledger nodes and queue nodes.
 *
 *     target ─► open routes (/healthz, /readyz) ─► guard ─► route ─► handler ─► answer
 *       │400                                         │401, 403   │404      │HttpError, else 500
 *
 * Nodes of a cluster serve `/metrics` openly on the loopback. Elsewhere it requires the token, or one for metrics only.
 *
 * Every service supplies its routes, its limits, its readiness, and its metrics. Shared safeguards are here: the bounds
 * on bodies, connections and streams, the timeouts, the rejection of web pages, of unauthenticated callers, and of a
 * reachable address without a token.
 */

import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WorkView } from "../background.ts";
import type { AuditRequester } from "../ports/audit.ts";
import type { Log } from "../ports/log.ts";
import { Admission } from "./admission.ts";
import { readBody } from "./body.ts";
import {
  isLoopback,
  listenProblem,
  refuseForeignPages,
  requireToken,
  type ScopedToken,
} from "./guard.ts";
import { HttpError } from "./http-error.ts";
import { formatMetrics, type Metric, PROMETHEUS_CONTENT_TYPE } from "./prometheus.ts";
import { credentialOf, requesterOf } from "./requester.ts";
import { RouteTable } from "./routes.ts";

/** Reads `/metrics` and nothing else. */
const METRICS_SCOPE = "metrics";
/** Time for requests under way after the server has stopped listening. */
const CLOSE_GRACE_MS = 200;
/** How often connections are checked for incomplete requests. */
const CONNECTIONS_CHECKED_MS = 2_000;
const HANDSHAKE_MS_MAX = 10_000;
/** A connection that has not sent the head of a request by then is closed. */
const HEAD_MS_MAX = 10_000;

export interface ControlLimits {
  readonly bodyBytesMax: number;
  readonly connectionsMax: number;
  /** Connections per address, so that one leaves slots for others. */
  readonly connectionsPerAddressMax: number;
  /** Concurrent streamed answers (followers, readers of events). */
  readonly streamsMax: number;
  /** Time for a request to arrive. */
  readonly requestMsMax: number;
  /** How long an idle connection is kept for the next request. */
  readonly keepAliveMs: number;
}

export type Answer =
  | { readonly status: number; readonly json: unknown }
  | {
      readonly status: number;
      readonly text: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  /** The handler has taken over the response and ends it itself. */
  | "taken";

export interface ControlRequest {
  readonly target: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The requester, for the audit log. */
  readonly requester: AuditRequester;
  /** Scope of the caller's token; null for full access. */
  readonly scope: string | null;
  /** The body as text; a `HttpError` when it is too large. */
  text(): Promise<string>;
  /** The body as JSON; null when there is none. */
  json(): Promise<unknown>;
  /** Whether the caller disconnected before its answer. */
  gone(): boolean;
  /** Calls `listener` when the caller disconnects before its answer. */
  onGone(listener: () => void): void;
  /** The response itself, for a streamed answer; counted, and ended when the server closes. */
  takeResponse(): ServerResponse;
}

export type Handler = (request: ControlRequest) => Answer | Promise<Answer>;

export interface Upgrade {
  readonly path: string;
  readonly protocol: string;
  readonly serve: (socket: Duplex, requester: AuditRequester) => void;
}

export interface ControlService {
  /** "GET /v1/jobs/:id" → handler. */
  readonly routes: Readonly<Record<string, Handler>>;
  readonly limits: ControlLimits;
  readonly alive: () => object;
  readonly ready: () => Readiness | Promise<Readiness>;
  /** Background work, for `GET /v1/debug/work`. */
  readonly work: () => readonly WorkView[];
  readonly metrics: () => readonly Metric[] | Promise<readonly Metric[]>;
  /** Throws when a scoped token must not access a path. */
  readonly permit?: (scope: string, path: string) => void;
  /** Why no route can be served now; null when they can. */
  readonly unavailable?: () => string | null;
  readonly upgrade?: Upgrade;
  /** A page for people on `GET /`; it contains no data, so it is served without a token. */
  readonly page?: Handler;
  /** Describes an error of the service; `undefined` leaves it to the server. */
  readonly describeError?: (error: unknown) => Answer | undefined;
  /** Receives warnings about the interface itself. */
  readonly log?: Log;
  /** An internal error, for our log and not for the caller. */
  readonly onFailure: (route: string, error: unknown) => void;
}

interface Readiness {
  readonly ready: boolean;
  /** Why it is not ready, though the process is healthy. */
  readonly why?: string;
  /** A problem, though it serves. */
  readonly warning?: string;
}

/** Readiness of a node. A draining one is not ready: it finishes its work and gets no more. */
export function readiness(
  ready: boolean,
  draining: boolean,
  problem: string | null = null,
  warning: string | null = null,
): Readiness {
  if (draining) return { ready: false, why: "draining" };
  if (problem !== null) return { ready: false, why: problem };
  return warning === null ? { ready } : { ready, warning };
}

export interface ControlListen {
  readonly host: string;
  readonly port: number;
  /** Null serves all clients that can reach the loopback. */
  readonly token: string | null;
  /** Scoped tokens besides `token`. */
  readonly scoped?: readonly ScopedToken[];
  /**
   * Undefined guards `/metrics` like any route. Otherwise it is open on the loopback, and elsewhere accessible with
   * this token as well; null: with no other.
   */
  readonly metricsToken?: string | null;
  /** Serves only HTTPS, with this certificate. */
  readonly tls?: ServerCertificate | undefined;
}

/** PEM. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

export function json(value: unknown, status = 200): Answer {
  return { status, json: value };
}

export class ControlServer {
  readonly #service: ControlService;
  readonly #token: string | null;
  readonly #scoped: readonly ScopedToken[];
  readonly #openMetrics: boolean;
  /** Credential of requests that have passed the guard. */
  readonly #credential: string;
  readonly #server: Server;
  readonly #open = new RouteTable<Handler>();
  readonly #routes = new RouteTable<Handler>();
  readonly #admission: Admission;
  readonly #streams = new Set<ServerResponse>();
  readonly #upgraded = new Set<Duplex>();

  private constructor(
    { host, token, scoped = [], metricsToken, tls }: ControlListen,
    service: ControlService,
  ) {
    this.#service = service;
    this.#token = token;
    const readers = typeof metricsToken === "string" ? [metricsToken] : [];
    this.#scoped = [...scoped, ...readers.map((one) => ({ scope: METRICS_SCOPE, token: one }))];
    this.#openMetrics = metricsToken !== undefined && isLoopback(host);
    this.#credential = credentialOf(token);
    this.#open.add("GET /healthz", () => json(service.alive()));
    this.#open.add("GET /readyz", async () => {
      const state = await service.ready();
      return json(state, state.ready ? 200 : 503);
    });
    this.#routes.add("GET /v1/debug/work", () => json(service.work()));
    for (const [route, handler] of Object.entries(service.routes)) this.#routes.add(route, handler);
    const { limits } = service;
    const options = {
      requestTimeout: limits.requestMsMax,
      headersTimeout: Math.min(HEAD_MS_MAX, limits.requestMsMax),
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: CONNECTIONS_CHECKED_MS,
    };
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      this.#serve(request, response).catch(() => response.destroy());
    };
    this.#server =
      tls === undefined
        ? createServer(options, serve)
        : createSecureServer({ ...options, ...tls, handshakeTimeout: HANDSHAKE_MS_MAX }, serve);
    this.#admission = new Admission(limits);
    this.#server.on("connection", (socket: Socket) => this.#admission.admit(socket));
    this.#server.on("upgrade", (request, socket, head) => this.#onUpgrade(request, socket, head));
  }

  static async listen(listen: ControlListen, service: ControlService): Promise<ControlServer> {
    const { host, port, token } = listen;
    const problem = listenProblem(host, token);
    if (problem !== null) throw new Error(problem);
    const server = new ControlServer(listen, service);
    await new Promise<void>((resolve, reject) => {
      server.#server.once("error", reject);
      server.#server.listen({ host, port }, () => {
        server.#server.removeListener("error", reject);
        resolve();
      });
    });
    if (token !== null && listen.tls === undefined && !isLoopback(host)) {
      const meaning = "whoever listens on the way reads the token; put TLS in front of it";
      service.log?.event("warn", "api.plaintext", { host, port: server.port, meaning });
    }
    return server;
  }

  /** Everything served here, as "GET /path". */
  get routes(): readonly string[] {
    const { page, routes, upgrade } = this.#service;
    return [
      ...["GET /healthz", "GET /readyz", "GET /metrics", "GET /v1/debug/work"],
      ...Object.keys(routes),
      ...(page === undefined ? [] : ["GET /"]),
      ...(upgrade === undefined ? [] : [`UPGRADE ${upgrade.path}`]),
    ];
  }

  /** The bound port: the requested one, or any when that was 0. */
  get port(): number {
    const address = this.#server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  }

  /** Resolves when all connections are closed; lingering ones are destroyed after a grace period. */
  close(): Promise<void> {
    for (const response of this.#streams) response.end();
    for (const socket of this.#upgraded) socket.end();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const cut = setTimeout(() => this.#disconnect(), CLOSE_GRACE_MS);
    return closed.finally(() => clearTimeout(cut));
  }

  /**
   * Before a process ends by a defect: reads no more requests. A thread that ends while one arrives would end the whole
   * process by SIGABRT, without its exit code (seen with Node 20, 1 of 21 times).
   */
  abandon(): void {
    this.#server.close();
    this.#disconnect();
  }

  #disconnect(): void {
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#answer(request, response);
    } catch (error) {
      answer = this.#describe(request, error);
    }
    if (answer === "taken") return;
    if (response.headersSent) response.destroy();
    else write(response, answer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Answer> {
    const { path, query } = readTarget(request.url);
    const method = request.method ?? "GET";
    const serve = (
      handler: Handler,
      params: ControlRequest["params"],
      credential: string,
      scope: string | null = null,
    ) => {
      const requester = requesterOf(request, credential);
      return handler(this.#requestOf(request, response, { params, query, requester, scope }));
    };
    const open = this.#open.find(method, path);
    if (open !== null) return serve(open.value, open.params, "");
    const { page, unavailable, metrics } = this.#service;
    const isMetrics = method === "GET" && path === "/metrics";
    const isOpenMetrics = isMetrics && this.#openMetrics;
    const token = isOpenMetrics ? null : this.#token;
    refuseForeignPages(request.headers, { token, ownPages: page !== undefined });
    if (page !== undefined && method === "GET" && path === "/") return serve(page, {}, "");
    const part = requireToken(request.headers, token, this.#scoped);
    if (!isOpenMetrics) this.#admission.proved(request.socket);
    if (part !== null) this.#permit(part.scope, path);
    if (isMetrics) {
      const headers = { "content-type": PROMETHEUS_CONTENT_TYPE };
      return { status: 200, text: formatMetrics(await metrics()), headers };
    }
    const found = this.#routes.find(method, path);
    if (found === null) throw new HttpError(404, `there is no ${method} ${path}`);
    const problem = unavailable?.() ?? null;
    if (problem !== null) throw new HttpError(503, problem);
    const credential = part === null ? this.#credential : credentialOf(part.token);
    return serve(found.value, found.params, credential, part?.scope ?? null);
  }

  #permit(scope: string, path: string): void {
    if (scope !== METRICS_SCOPE) this.#service.permit?.(scope, path);
    else if (path !== "/metrics") throw new HttpError(403, "this token opens /metrics only");
  }

  #requestOf(
    request: IncomingMessage,
    response: ServerResponse,
    at: Pick<ControlRequest, "params" | "query" | "requester" | "scope">,
  ): ControlRequest {
    const { bodyBytesMax, streamsMax } = this.#service.limits;
    const text = async (): Promise<string> => {
      const body = await readBody(request, bodyBytesMax);
      if (body.ok) return body.text;
      throw new HttpError(413, `the request is ${body.bytes} bytes; the limit is ${bodyBytesMax}`);
    };
    return {
      ...at,
      target: request.url ?? "/",
      headers: request.headers,
      text,
      json: async () => parseJson(await text()),
      gone: () => response.destroyed && !response.writableFinished,
      onGone: (listener) => {
        response.once("close", () => {
          if (!response.writableFinished) listener();
        });
      },
      takeResponse: () => {
        if (this.#streams.size >= streamsMax) {
          throw new HttpError(503, `${streamsMax} readers follow already`);
        }
        this.#streams.add(response);
        response.once("close", () => this.#streams.delete(response));
        return response;
      },
    };
  }

  #describe(request: IncomingMessage, error: unknown): Answer {
    const known = this.#service.describeError?.(error);
    if (known !== undefined) return known;
    if (error instanceof HttpError) return json({ error: error.message }, error.status);
    this.#service.onFailure(routeText(request), error);
    return this.#describe(request, new HttpError(500, "the request failed"));
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { upgrade } = this.#service;
    // Node detaches its own listener before it hands the socket over: a reset would end the process.
    socket.on("error", () => socket.destroy());
    try {
      refuseForeignPages(request.headers, { token: this.#token, ownPages: false });
      requireToken(request.headers, this.#token);
      const wanted = upgrade?.path === request.url && upgrade?.protocol === request.headers.upgrade;
      if (!wanted || upgrade === undefined) throw new HttpError(404, "there is no such upgrade");
      const problem = this.#service.unavailable?.() ?? null;
      if (problem !== null) throw new HttpError(503, problem);
    } catch (error) {
      const status = error instanceof HttpError ? error.status : 500;
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${upgrade.protocol}\r\n\r\n`,
    );
    this.#admission.proved(request.socket);
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    // Sockets of an HTTP server stay half open: one closed by its client would keep its slot.
    socket.once("end", () => socket.end());
    // Bytes sent ahead by the client belong to the new protocol.
    if (head.length > 0) socket.unshift(head);
    upgrade.serve(socket, requesterOf(request, this.#credential));
  }
}

/** Only a path of this server: neither another host's address nor "//", which URL parsers take for one. */
function readTarget(target: string | undefined): { path: string; query: URLSearchParams } {
  const [path = "", query = ""] = (target ?? "").split(/\?(.*)/s, 2);
  if (!path.startsWith("/") || path.startsWith("//")) throw new HttpError(400, "not a path");
  return { path, query: new URLSearchParams(query) };
}

function parseJson(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new HttpError(400, "the body is not JSON");
  }
}

/** Long enough to recognise, too short to fill a disk with. */
const ROUTE_CHARACTERS_MAX = 200;

function routeText({ method, url }: IncomingMessage): string {
  return `${method} ${url}`.slice(0, ROUTE_CHARACTERS_MAX);
}

function write(response: ServerResponse, answer: Exclude<Answer, "taken">): void {
  const body = "text" in answer ? answer.text : `${JSON.stringify(answer.json)}\n`;
  const headers = "text" in answer ? answer.headers : { "content-type": "application/json" };
  const length = Buffer.byteLength(body);
  if (answer.status === 401) response.setHeader("www-authenticate", "Bearer");
  response.writeHead(answer.status, { ...headers, "content-length": length });
  response.end(body);
}
