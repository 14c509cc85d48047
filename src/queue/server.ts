/**
 * HTTP of a node: JSON-RPC on `POST /`, the page on `GET /`, live following, metrics and health.
 *
 * Without a token only a loopback address is served, and only to pages of its own: a browser on this
 * machine that visits a hostile site must not become its hand (Origin and Host are checked).
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { answerRpc, asQueueError, failure } from "./api/rpc.ts";
import { RpcClient } from "./api/rpc-client.ts";
import type { QueueApi } from "./api.ts";
import { followTask } from "./follow.ts";
import type { QueueNode } from "./node.ts";
import type { Log } from "./store/log.ts";

export interface Listen {
  readonly host: string;
  readonly port: number;
}

export interface ServerOptions {
  readonly node: QueueNode;
  readonly api: QueueApi;
  readonly token: string | undefined;
  readonly log: Log;
}

const JSON_TYPE = { "content-type": "application/json" };

export function isLoopback(host: string): boolean {
  return (
    host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host)
  );
}

export class QueueServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  #url = "";

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 60_000;
    // Long polls outlast the usual limit on a request.
    this.#server.requestTimeout = 120_000;
  }

  get url(): string {
    return this.#url;
  }

  async listen(listen: Listen): Promise<void> {
    if (this.#options.token === undefined && !isLoopback(listen.host)) {
      throw new QueueError(
        "UNAUTHORIZED",
        `refusing to listen on ${listen.host} without authentication: give --token-file, or listen on 127.0.0.1`,
      );
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(listen.port, listen.host, resolve);
    });
    const address = this.#server.address();
    const port = address !== null && typeof address === "object" ? address.port : listen.port;
    const wildcard = listen.host === "0.0.0.0" || listen.host === "::";
    const host = wildcard
      ? hostname()
      : listen.host.includes(":")
        ? `[${listen.host}]`
        : listen.host;
    this.#url = `http://${host}:${port}`;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      const known = asQueueError(error);
      if (known.code === "INTERNAL") {
        this.#options.log.write("error", "request.failed", {
          path: request.url,
          reason: known.message,
        });
      }
      if (!response.headersSent)
        send(response, statusOf(known), JSON_TYPE, JSON.stringify(failure(null, known)));
      else response.destroy();
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", "http://node").pathname;
    const { node } = this.#options;
    if (path === "/healthz") return send(response, 200, JSON_TYPE, '{"ok":true}');
    if (path === "/readyz") {
      const ready = await node.ready();
      return send(
        response,
        ready ? 200 : 503,
        JSON_TYPE,
        JSON.stringify({ ready, role: node.roleName }),
      );
    }
    this.#checkOrigin(request);
    // The page holds no data; what it shows it asks for with the token.
    if (request.method === "GET" && path === "/") return sendPage(response);
    this.#checkToken(request);
    if (request.method === "POST" && path === "/") return this.#call(request, response);
    if (request.method === "GET" && path === "/metrics") {
      const text = node.metrics.text(
        await this.#options.api.clusterStatus(),
        node.leader()?.memory.leases.size ?? 0,
      );
      return send(response, 200, { "content-type": "text/plain; version=0.0.4" }, text);
    }
    const follow = /^\/(?:tasks\/(\d{1,15})\/)?follow$/.exec(path);
    if (request.method === "GET" && follow !== null)
      return this.#follow(request, response, follow[1]);
    throw new QueueError("NOT_FOUND", `there is nothing at ${request.method} ${path}`);
  }

  async #call(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
      throw new QueueError("INVALID_REQUEST", "send the call with content-type: application/json");
    }
    const body = await readBody(request, response);
    if (body === undefined) return;
    let gone = false;
    response.once("close", () => {
      gone = !response.writableFinished;
    });
    const forwarded = request.headers["x-hyperscale-forwarded"] !== undefined;
    const answer = await answerRpc(body, (call) =>
      this.#options.api.handle(call, { forwarded, gone: () => gone }),
    );
    if (answer === undefined) return send(response, 204, {}, "");
    send(response, 200, JSON_TYPE, JSON.stringify(answer));
  }

  async #follow(
    request: IncomingMessage,
    response: ServerResponse,
    taskId: string | undefined,
  ): Promise<void> {
    const { node, token } = this.#options;
    const leaderUrl =
      request.headers["x-hyperscale-forwarded"] === undefined ? await node.leaderUrl() : undefined;
    if (leaderUrl === undefined) return followTask({ node, response, taskId });
    // Words of executors are known to the leader only.
    const rpc = new RpcClient({ url: leaderUrl, token, forwarded: true });
    const upstream = await rpc.open(request.url ?? "/");
    response.writeHead(upstream.statusCode ?? 502, {
      "content-type": upstream.headers["content-type"] ?? "",
    });
    upstream.pipe(response);
    response.once("close", () => {
      upstream.destroy();
      rpc.close();
    });
  }

  #checkToken(request: IncomingMessage): void {
    const { token } = this.#options;
    if (token === undefined) return;
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (given === undefined || !timingSafeEqual(digest(given), digest(token))) {
      throw new QueueError(
        "UNAUTHORIZED",
        "a bearer token is required: send Authorization: Bearer <token>",
      );
    }
  }

  #checkOrigin(request: IncomingMessage): void {
    const { host, origin } = request.headers;
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) {
      throw new QueueError("UNAUTHORIZED", "calls from pages of other sites are refused");
    }
    if (this.#options.token !== undefined || host === undefined) return;
    if (!isLoopback(host.replace(/:\d+$/, ""))) {
      throw new QueueError(
        "UNAUTHORIZED",
        `this node answers to a loopback name only, not to "${host}"`,
      );
    }
  }
}

/** The body, or undefined when it was too large and has been answered. */
async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    // What is over the limit is read and thrown away, so that the caller gets the answer.
    if (length <= QUEUE_LIMITS.requestBytesMax) chunks.push(bytes);
    else if (length > 8 * QUEUE_LIMITS.requestBytesMax) request.destroy();
  }
  if (length <= QUEUE_LIMITS.requestBytesMax) return Buffer.concat(chunks).toString("utf8");
  const { requestBytesMax, payloadBytesMax } = QUEUE_LIMITS;
  const limits = `${requestBytesMax}, and ${payloadBytesMax} for one input`;
  const problem = `the request is ${length} bytes; the limit is ${limits}`;
  send(
    response,
    413,
    JSON_TYPE,
    JSON.stringify(failure(null, new QueueError("TOO_LARGE", problem))),
  );
  return undefined;
}

/** Beside this file in dist/; in a checkout the built page is used from there too. */
const PAGE_FILES = ["../web/queue.html", "../../dist/web/queue.html"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

function sendPage(response: ServerResponse): void {
  const file = PAGE_FILES.find((candidate) => existsSync(candidate));
  if (file === undefined)
    throw new QueueError("NOT_FOUND", "the page is not built: run npm run build");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    "content-security-policy":
      "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
      "connect-src 'self'; img-src data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
  };
  send(response, 200, headers, readFileSync(file, "utf8"));
}

function send(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: string,
): void {
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  response.end(body);
}

function statusOf(error: QueueError): number {
  if (error.code === "UNAUTHORIZED") return 401;
  if (error.code === "NOT_FOUND") return 404;
  if (error.code === "INVALID_REQUEST") return 400;
  return error.retryable ? 503 : 500;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
