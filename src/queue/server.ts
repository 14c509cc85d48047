/**
 * HTTP of a node: JSON-RPC on `POST /`, the page on `GET /`, live following, metrics and health.
 *
 * Authentication is in host/control. Rejections are JSON-RPC errors here, as the answers are.
 */

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { createSecureContext } from "node:tls";
import { fileURLToPath } from "node:url";
import { errorText } from "../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { type ErrorCode, QueueError } from "../core/queue/errors.ts";
import { pathRefusal, TOKEN_SCOPES, type TokenScope } from "../core/queue/permissions.ts";
import { listenProblem, type ScopedToken } from "../host/control/guard.ts";
import { HttpError } from "../host/control/http-error.ts";
import {
  type Answer,
  type ControlLimits,
  type ControlRequest,
  ControlServer,
  type ControlService,
  json,
  type ServerCertificate,
} from "../host/control/server.ts";
import type { AuditRequester } from "../host/ports/audit.ts";
import type { Log } from "../host/ports/log.ts";
import { answerRpc, asQueueError, failure } from "./api/rpc.ts";
import type { QueueApi } from "./api.ts";
import { sendFile } from "./file-server.ts";
import { followTask } from "./follow.ts";
import type { Listen, NodeTls, ScopedTokens } from "./node-options.ts";
import type { ServedNode } from "./served-node.ts";

interface ServerOptions {
  readonly node: ServedNode;
  readonly api: QueueApi;
  /** Known once the database is open. */
  readonly token: () => string | undefined;
  readonly scopedTokens: ScopedTokens;
  readonly tls: NodeTls | undefined;
  readonly log: Log;
}

const LIMITS: ControlLimits = {
  bodyBytesMax: QUEUE_LIMITS.requestBytesMax,
  /** Every worker process keeps a few, every follower one. */
  connectionsMax: 4_096,
  connectionsPerAddressMax: 1_024,
  streamsMax: 1_024,
  /** Long polls outlast the usual limit on a request. */
  requestMsMax: 120_000,
  keepAliveMs: 60_000,
};

/** Fails as listening would: with the reason, when the address is in use or is none of this machine. */
export async function checkAddress({ host, port }: Listen): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", reject);
    probe.listen({ host, port }, resolve);
  });
  await new Promise((resolve) => probe.close(resolve));
}

export class QueueServer {
  readonly #options: ServerOptions;
  #server: ControlServer | undefined;
  #url = "";

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  get control(): ControlServer | undefined {
    return this.#server;
  }

  get url(): string {
    return this.#url;
  }

  async listen({ host, port }: Listen): Promise<void> {
    const token = this.#options.token() ?? null;
    const problem = listenProblem(host, token);
    if (problem !== null) {
      const hint = "give --token-file, or listen on 127.0.0.1";
      throw new QueueError("UNAUTHORIZED", `${problem}: ${hint}`);
    }
    const scoped = tokensOf(token, this.#options.scopedTokens);
    const tls = certificateOf(this.#options.tls);
    this.#server = await ControlServer.listen({ host, port, token, scoped, tls }, this.#service());
    const wildcard = host === "0.0.0.0" || host === "::";
    const name = wildcard ? hostname() : host.includes(":") ? `[${host}]` : host;
    this.#url = `${tls === undefined ? "http" : "https"}://${name}:${this.#server.port}`;
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  #service(): ControlService {
    const { node, api, log } = this.#options;
    return {
      log,
      limits: LIMITS,
      page: sendPage,
      routes: {
        "POST /": (request) => this.#call(request),
        "GET /follow": (request) => this.#follow(request, undefined),
        "GET /tasks/:id/follow": (request) => this.#follow(request, request.params["id"]),
        "GET /tasks/:id/files/:name": (request) => sendFile(node.reader, request),
      },
      permit: (scope, path) => {
        const refusal = isScope(scope) ? pathRefusal(scope, path) : null;
        if (refusal !== null) throw new QueueError("FORBIDDEN", refusal);
      },
      alive: () => ({ ok: true }),
      ready: async () => ({ ...(await node.ready()), role: node.roleName }),
      metrics: async () => node.metrics.all(await api.clusterStatus(), node.audited),
      describeError,
      work: () => node.background.list(),
      onFailure: (route, error) =>
        log.event("error", "request.failed", { route, reason: errorText(error) }),
    };
  }

  async #call(request: ControlRequest): Promise<Answer> {
    if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
      throw new QueueError("INVALID_REQUEST", "send the call with content-type: application/json");
    }
    const body = await request.text();
    const forwardedBy = forwarderOf(request);
    const forwarded = forwardedBy !== undefined;
    const requester: AuditRequester = forwarded
      ? { ...request.requester, kind: "peer", name: forwardedBy }
      : { ...request.requester, kind: callerKind(request.scope) };
    const answer = await answerRpc(body, (call) =>
      this.#options.api.handle(call, {
        requester,
        scope: isScope(request.scope) ? request.scope : null,
        forwarded,
        gone: request.gone,
        onGone: request.onGone,
      }),
    );
    return answer === undefined ? { status: 204, text: "", headers: {} } : json(answer);
  }

  async #follow(request: ControlRequest, taskId: string | undefined): Promise<Answer> {
    const { node, token, tls } = this.#options;
    if (taskId !== undefined && !/^\d{1,15}$/.test(taskId)) {
      throw new QueueError("NOT_FOUND", `there is no task ${taskId.slice(0, 40)}`);
    }
    const forwarded = forwarderOf(request) !== undefined;
    await followTask({ node, request, taskId, forwarded, token: token(), ca: tls?.ca });
    return "taken";
  }
}

/** Reports a problem of the file at the start, not with the first connection. */
function certificateOf(tls: NodeTls | undefined): ServerCertificate | undefined {
  if (tls === undefined) return undefined;
  const { certificate, ca } = tls;
  try {
    createSecureContext({ ...certificate, ...(ca === undefined ? {} : { ca }) });
  } catch (error) {
    const problem = `certificate, key and authority do not fit: ${errorText(error)}`;
    throw new QueueError("INVALID_PARAMS", problem, { cause: error });
  }
  return certificate;
}

/** One token with two scopes would have the one that is checked first. */
function tokensOf(token: string | null, scopedTokens: ScopedTokens): readonly ScopedToken[] {
  const scoped = Object.entries(scopedTokens).map(([scope, one]) => ({ scope, token: one }));
  if (scoped.length === 0) return [];
  const cure = "clients, workers and operators need a token each besides the nodes' own";
  if (token === null) throw new QueueError("INVALID_PARAMS", `${cure}, which --open takes away`);
  if (new Set([token, ...scoped.map((one) => one.token)]).size <= scoped.length)
    throw new QueueError("INVALID_PARAMS", `two of the tokens are the same: ${cure}`);
  return scoped;
}

/** The node that forwards a call; only believed with the token of nodes. */
function forwarderOf({ headers, scope }: ControlRequest): string | undefined {
  const name = headers["x-hyperscale-forwarded"];
  return scope === null && name !== undefined ? String(name) : undefined;
}

/** Kind of requester in the audit log, by its token. */
function callerKind(scope: string | null): AuditRequester["kind"] {
  return scope === "client" || scope === "worker" ? scope : "operator";
}

function isScope(scope: string | null): scope is TokenScope {
  return TOKEN_SCOPES.some((known) => known === scope);
}

/** Beside this file in dist/; in a checkout the built page is used from there too. */
const PAGE_FILES = ["../web/queue.html", "../../dist/web/queue.html"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

function sendPage(): Answer {
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
  return { status: 200, text: readFileSync(file, "utf8"), headers };
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: "INVALID_REQUEST",
  401: "UNAUTHORIZED",
  403: "UNAUTHORIZED",
  404: "NOT_FOUND",
  413: "TOO_LARGE",
  503: "OVERLOADED",
};

/** Errors of the server and of the queue as JSON-RPC; others are not shown to the caller. */
function describeError(error: unknown): Answer | undefined {
  const known = error instanceof HttpError ? ofHttp(error) : asQueueError(error);
  if (known.code === "INTERNAL" && !(error instanceof HttpError)) return undefined;
  return json(failure(null, known), statusOf(known));
}

function ofHttp({ status, message }: HttpError): QueueError {
  const code = CODE_OF_STATUS[status] ?? "INTERNAL";
  const more = code === "TOO_LARGE" ? `, and ${QUEUE_LIMITS.payloadBytesMax} for one input` : "";
  return new QueueError(code, message + more);
}

function statusOf(error: QueueError): number {
  if (error.code === "UNAUTHORIZED") return 401;
  if (error.code === "FORBIDDEN") return 403;
  if (error.code === "NOT_FOUND") return 404;
  if (error.code === "INVALID_REQUEST") return 400;
  if (error.code === "TOO_LARGE") return 413;
  return error.retryable ? 503 : 500;
}
