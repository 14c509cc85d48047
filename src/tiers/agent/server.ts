/**
 * The agent's control interface: small, JSON over HTTP, meant for this machine.
 *
 *     GET  /v1/members  /v1/status  /v1/keys  /metrics  /healthz
 *     GET  /v1/events                  one JSON line per event until the reader goes
 *     POST /v1/join {"addresses"}  /v1/leave  /v1/force-leave {"name"}  /v1/keys/reload
 *
 * A page in a browser must not reach it: requests that carry an Origin, or a Host that is not ours, are
 * refused. Off the loopback it needs a bearer token; the configuration refuses to start without one.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { guardHttp } from "../../host/control/http-guard.ts";
import { formatMetrics, PROMETHEUS_CONTENT_TYPE } from "../../host/control/prometheus.ts";
import type { Agent } from "./agent.ts";
import type { AgentEvent } from "./events.ts";
import { agentMetrics } from "./metrics.ts";

const BODY_BYTES_MAX = 65_536;
const SUBSCRIBERS_MAX = 64;
/**
 * A reader of events that lags this far behind is cut off: a slow one never holds membership up.
 * (B-52f)
 */
const SUBSCRIBER_BACKLOG_BYTES_MAX = 1_048_576;
const REQUEST_MS_MAX = 10_000;

export interface AgentServerOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string | null;
  readonly agent: Agent;
  /** Asked to leave over the interface: answer first, then go. */
  readonly onLeave: () => void;
  readonly resolve: (addresses: readonly string[]) => Promise<readonly string[]>;
}

type Handler = (body: unknown) => unknown | Promise<unknown>;

class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class AgentServer {
  readonly #options: AgentServerOptions;
  readonly #server: Server;
  readonly #subscribers = new Set<ServerResponse>();
  readonly #routes: ReadonlyMap<string, Handler>;

  private constructor(options: AgentServerOptions) {
    this.#options = options;
    this.#routes = routesOf(options);
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => answerError(response, error));
    });
    this.#server.requestTimeout = REQUEST_MS_MAX;
    this.#server.headersTimeout = REQUEST_MS_MAX;
    this.#server.maxConnections = 2 * SUBSCRIBERS_MAX;
  }

  static listen(options: AgentServerOptions): Promise<AgentServer> {
    const server = new AgentServer(options);
    return new Promise((resolve, reject) => {
      server.#server.once("error", reject);
      server.#server.listen({ host: options.host, port: options.port }, () => {
        server.#server.removeListener("error", reject);
        resolve(server);
      });
    });
  }

  publish(event: AgentEvent): void {
    if (this.#subscribers.size === 0) return;
    const line = `${JSON.stringify(event)}\n`;
    for (const reader of this.#subscribers) {
      if (reader.writableLength > SUBSCRIBER_BACKLOG_BYTES_MAX) reader.destroy();
      else reader.write(line);
    }
  }

  close(): Promise<void> {
    for (const reader of this.#subscribers) reader.end();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    setTimeout(() => this.#server.closeAllConnections(), 200).unref();
    return closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = guardHttp(request, this.#options);
    if (refusal !== null) throw new ApiError(refusal.status, refusal.message);
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const route = `${request.method} ${path}`;
    if (route === "GET /v1/events") {
      this.#subscribe(response);
      return;
    }
    if (route === "GET /metrics") {
      response.setHeader("content-type", PROMETHEUS_CONTENT_TYPE);
      response.end(formatMetrics(agentMetrics(this.#options.agent)));
      return;
    }
    const handler = this.#routes.get(route);
    if (handler === undefined) throw new ApiError(404, `there is no ${route}`);
    const body = request.method === "POST" ? await readJson(request) : null;
    answerJson(response, 200, await handler(body));
  }

  #subscribe(response: ServerResponse): void {
    if (this.#subscribers.size >= SUBSCRIBERS_MAX) {
      throw new ApiError(503, `${SUBSCRIBERS_MAX} readers of events already`);
    }
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.flushHeaders();
    this.#subscribers.add(response);
    response.once("close", () => this.#subscribers.delete(response));
  }
}

function routesOf(options: AgentServerOptions): ReadonlyMap<string, Handler> {
  const { agent } = options;
  return new Map<string, Handler>([
    ["GET /healthz", () => ({ ok: true, leaving: agent.status().leaving })],
    ["GET /v1/members", () => agent.members()],
    ["GET /v1/status", () => agent.status()],
    ["GET /v1/keys", () => agent.keys()],
    ["POST /v1/keys/reload", () => reload(agent)],
    [
      "POST /v1/join",
      async (body) => {
        const resolved = await options.resolve(textsOf(body, "addresses"));
        return { trying: resolved };
      },
    ],
    [
      "POST /v1/force-leave",
      (body) => {
        const name = textOf(body, "name");
        const member = agent.members().find((known) => known.name === name);
        if (member === undefined) throw new ApiError(404, `no member is called "${name}"`);
        if (member.state !== "dead" && member.state !== "left") {
          throw new ApiError(
            409,
            `"${name}" is ${member.state}: only a failed member can be removed`,
          );
        }
        agent.forceLeave(name);
        return { name };
      },
    ],
    [
      "POST /v1/leave",
      () => {
        setImmediate(options.onLeave);
        return { leaving: true };
      },
    ],
  ]);
}

function reload(agent: Agent): unknown {
  try {
    return agent.reloadKeys();
  } catch (error) {
    throw new ApiError(409, error instanceof Error ? error.message : "the keys were not reloaded");
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > BODY_BYTES_MAX) throw new ApiError(413, "the body is too large");
    chunks.push(chunk as Buffer);
  }
  if (length === 0) return null;
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch {
    throw new ApiError(400, "the body is not JSON");
  }
}

function textOf(body: unknown, field: string): string {
  const value = fieldOf(body, field);
  if (typeof value !== "string" || value === "" || value.length > 256) {
    throw new ApiError(400, `"${field}" must be a text`);
  }
  return value;
}

function textsOf(body: unknown, field: string): readonly string[] {
  const value = fieldOf(body, field);
  const texts = Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  if (!Array.isArray(value) || texts.length !== value.length || texts.length === 0) {
    throw new ApiError(400, `"${field}" must be a list of texts`);
  }
  if (texts.length > 64) throw new ApiError(400, `"${field}" has more than 64 entries`);
  return texts;
}

function fieldOf(body: unknown, field: string): unknown {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, field)) return undefined;
  return (body as Record<string, unknown>)[field];
}

function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(`${JSON.stringify(value)}\n`);
}

function answerError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // Only what we chose to say leaves; anything unexpected is ours to read, not the caller's. (CODEC-7)
  const known = error instanceof ApiError;
  answerJson(response, known ? error.status : 500, {
    error: known ? error.message : "the request failed",
  });
}
