/**
 * A ledger node's interface: JSON over HTTP for people and scripts, and one upgrade for programs.
 *
 *     POST /v1/jobs                    submit a job, with a key once however often it is sent
 *     POST /v1/jobs/ID/events          accepted, progress, cancel, cancelled, complete, fail, timeout
 *     GET  /v1/jobs/ID?level=strong    its state and events; eventual, session (minSeq), bounded (staleMs)
 *     GET  /v1/audit?from=&to=&job=    events of any time range, archived jobs included
 *     POST /v1/replace                 one node takes another's place in every group this node knows
 *     GET  /v1/status  /v1/groups  /healthz
 *     GET  /v1/stream  (Upgrade)       batches of requests and answers, api-stream.ts
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import { guardHttp } from "../host/control/http-guard.ts";
import {
  answerJson,
  type JsonAnswer,
  jobJson,
  type Read,
  type Replacement,
  readEvent,
  readRead,
  readReplacement,
  readSubmission,
  trailJson,
  wholeNumber,
} from "./api-json.ts";
import { STREAM_PROTOCOL, serveStream } from "./api-stream.ts";
import { AUDIT_EVENTS_MAX } from "./audit.ts";
import type { LedgerHost } from "./host.ts";
import { groupsOf, groupViews } from "./status.ts";

/** A description of a megabyte in base64, and room for the rest. */
const BODY_BYTES_MAX = 1_500_000;
const CONNECTIONS_MAX = 1_024;
/** Groups that change their replicas at the same time: each new one is sent its log. */
const REPLACED_AT_ONCE = 16;
const REQUEST_MS_MAX = 30_000;

export interface ApiServerOptions {
  readonly host: LedgerHost;
  readonly bind: string;
  readonly port: number;
  readonly token: string | null;
}

class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #server: Server;
  readonly #streams = new Set<Duplex>();

  private constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#serve(request).then(
        (answer) => write(response, answer),
        (error: unknown) => write(response, failure(error)),
      );
    });
    this.#server.on("upgrade", (request, socket) => this.#upgrade(request, socket as Socket));
    this.#server.requestTimeout = REQUEST_MS_MAX;
    this.#server.headersTimeout = REQUEST_MS_MAX;
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  static listen(options: ApiServerOptions): Promise<ApiServer> {
    const server = new ApiServer(options);
    return new Promise((resolve, reject) => {
      server.#server.once("error", reject);
      server.#server.listen({ host: options.bind, port: options.port }, () => {
        server.#server.removeListener("error", reject);
        resolve(server);
      });
    });
  }

  close(): Promise<void> {
    for (const socket of this.#streams) socket.end();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    setTimeout(() => {
      this.#server.closeAllConnections();
      for (const socket of this.#streams) socket.destroy();
    }, 200).unref();
    return closed;
  }

  #upgrade(request: IncomingMessage, socket: Socket): void {
    const { host, bind, token } = this.#options;
    const refusal = guardHttp(request, { host: bind, token });
    const wanted = request.url === "/v1/stream" && request.headers.upgrade === STREAM_PROTOCOL;
    if (refusal !== null || !wanted || !host.ready) {
      const status = refusal?.status ?? (wanted ? 503 : 404);
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    socket.setNoDelay(true);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${STREAM_PROTOCOL}\r\n\r\n`,
    );
    this.#streams.add(socket);
    socket.once("close", () => this.#streams.delete(socket));
    serveStream(socket, host);
  }

  async #serve(request: IncomingMessage): Promise<JsonAnswer> {
    const { host, bind, token } = this.#options;
    const refusal = guardHttp(request, { host: bind, token });
    if (refusal !== null) throw new ApiError(refusal.status, refusal.message);
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://ledger");
    if (pathname === "/healthz") {
      return { status: host.ready ? 200 : 503, body: { ready: host.ready } };
    }
    if (!host.ready) throw new ApiError(503, "the node is starting or going down; ask another");
    const route = `${request.method} ${pathname}`;
    const [, jobId, part] = /^\/v1\/jobs\/([^/]+)(?:\/(events))?$/.exec(pathname) ?? [];
    if (route === "POST /v1/jobs") return this.#ask(readSubmission(await readJson(request)));
    if (jobId !== undefined && part === "events" && request.method === "POST") {
      const source = { node: host.config.name, wallMs: host.wall() };
      return this.#ask(readEvent(await readJson(request), decodeURIComponent(jobId), source));
    }
    if (jobId !== undefined && part === undefined && request.method === "GET") {
      return this.#job(decodeURIComponent(jobId), searchParams);
    }
    switch (route) {
      case "GET /v1/status":
        return { status: 200, body: { ...host.status() } };
      case "GET /v1/groups":
        return { status: 200, body: { groups: this.#groups(searchParams) } };
      case "POST /v1/replace":
        return this.#replace(readReplacement(await readJson(request)));
      case "GET /v1/audit":
        return this.#audit(searchParams);
      default:
        throw new ApiError(404, `there is no ${route}`);
    }
  }

  async #ask(read: Read<LedgerRequest>): Promise<JsonAnswer> {
    if (!read.ok) throw new ApiError(400, read.problem);
    return answerJson(await this.#answer(read.value));
  }

  #answer(request: LedgerRequest): Promise<LedgerAnswer> {
    return new Promise((resolve) => this.#options.host.request(request, resolve));
  }

  /** From memory, else from the archive. */
  async #job(jobId: string, query: URLSearchParams): Promise<JsonAnswer> {
    const read = readRead(jobId, query);
    if (!read.ok) throw new ApiError(400, read.problem);
    const answer = await this.#answer(read.value);
    if (answer.kind !== "refused" || answer.code !== "ARCHIVED") return answerJson(answer);
    const state = await this.#options.host.archived(jobId);
    if (state === null) return answerJson(answer);
    return { status: 200, body: { answer: "job", archived: true, job: jobJson(state) } };
  }

  #groups(query: URLSearchParams): readonly unknown[] {
    const { node } = this.#options.host;
    const limit = wholeNumber(query, "limit", 1_000);
    if (limit === null) throw new ApiError(400, "limit must be a whole number");
    return node === null ? [] : groupViews(node, query.get("prefix") ?? "", limit);
  }

  /** Group by group; a repetition goes on where the last one ended. (VSR-27) */
  async #replace(read: Read<Replacement>): Promise<JsonAnswer> {
    if (!read.ok) throw new ApiError(400, read.problem);
    const { leaving, joining } = read.value;
    const { node } = this.#options.host;
    const failed: { group: string; why: string }[] = [];
    const groups = node === null ? [] : [...groupsOf(node, leaving)];
    const total = groups.length;
    const work = async (): Promise<void> => {
      for (let next = groups.pop(); next !== undefined; next = groups.pop()) {
        const { group } = next;
        const eventId = `replace/${leaving}/${joining}`;
        const answer = await this.#answer({ kind: "replace", group, eventId, leaving, joining });
        if (answer.kind === "committed") continue;
        failed.push({ group, why: String(answerJson(answer).body["error"]) });
      }
    };
    await Promise.all(Array.from({ length: REPLACED_AT_ONCE }, work));
    const replaced = total - failed.length;
    return { status: 200, body: { answer: "replaced", replaced, failed } };
  }

  async #audit(query: URLSearchParams): Promise<JsonAnswer> {
    const from = time(query, "from", 0);
    const to = time(query, "to", Number.MAX_SAFE_INTEGER);
    const limit = wholeNumber(query, "limit", 1_000);
    if (limit === null || limit < 1) throw new ApiError(400, "limit must be a whole number");
    const jobId = query.get("job");
    const page = await this.#options.host.audit({
      ...{ from, to, jobId },
      limit: Math.min(limit, AUDIT_EVENTS_MAX),
    });
    const events = page.events.map(({ jobId: job, event, archived }) => ({
      jobId: job,
      ...trailJson(event),
      archived,
    }));
    return { status: 200, body: { events, truncated: page.truncated } };
  }
}

function time(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(value)) return value;
  throw new ApiError(400, `${name} "${text}": write 2026-01-31T12:00:00Z, or milliseconds`);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > BODY_BYTES_MAX) throw new ApiError(413, "the body is too large");
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch {
    throw new ApiError(400, "the body is not JSON");
  }
}

function write(response: ServerResponse, { status, body }: JsonAnswer): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(`${JSON.stringify(body)}\n`);
}

/** Only what we chose to say leaves. (CODEC-7) */
function failure(error: unknown): JsonAnswer {
  if (error instanceof ApiError) return { status: error.status, body: { error: error.message } };
  if (error instanceof URIError) return { status: 400, body: { error: "not a job id" } };
  return { status: 500, body: { error: "the request failed" } };
}
