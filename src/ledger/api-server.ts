/**
 * A ledger node's interface: JSON over HTTP for people and scripts, and one upgrade for programs.
 *
 *     POST /v1/jobs                    submit a job, with a key once however often it is sent (*)
 *     POST /v1/jobs/ID/events          accepted, started, paused, cancel, complete, … with ifSeq and ifFence (*)
 *     GET  /v1/jobs/ID?level=strong    its state and events; eventual, session (minSeq), bounded (staleMs)
 *     GET  /v1/jobs?status=&owner=     the jobs this node replicates, by status and owner, in pages
 *     GET  /v1/audit?from=&to=&job=    events of any time range, archived jobs included
 *     POST /v1/replace                 one node takes another's place in every group this node knows
 *     GET  /v1/status  /v1/groups  /metrics  /healthz  /readyz
 *     GET  /v1/stream  (Upgrade)       batches of requests and answers, api-stream.ts
 *
 * (*) Of `hyperscale ledger` only. Jobs of gates and managers are written by their leaders: clients submit and
 * steer them over the cluster's own protocol, with the clients' secret. Their streams serve reads and watches.
 */

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { errorText } from "../core/base/error-text.ts";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import { HttpError } from "../host/control/http-error.ts";
import {
  type Answer,
  type ControlLimits,
  ControlServer,
  type Handler,
  json,
  readiness,
} from "../host/control/server.ts";
import type { AuditRequester } from "../host/ports/audit.ts";
import type { Log } from "../host/ports/log.ts";
import {
  answerJson,
  type JsonAnswer,
  type Replacement,
  readJobQuery,
  readRead,
  readReplacement,
  readSubmission,
  trailJson,
  wholeNumber,
} from "./api-json.ts";
import { acceptsWrites, STREAM_PROTOCOL, serveStream } from "./api-stream.ts";
import { AUDIT_EVENTS_MAX } from "./audit.ts";
import { writeEntry } from "./audit-entries.ts";
import type { LedgerConfig } from "./config.ts";
import { readEvent } from "./event-json.ts";
import type { Read } from "./json-check.ts";
import { ledgerMetrics } from "./metrics.ts";
import { redactAnswer } from "./redaction.ts";
import type { LedgerService } from "./service.ts";
import { groupsOf, groupViews } from "./status.ts";

/** Groups that change their replicas at the same time: each new one is sent its log. */
const REPLACED_AT_ONCE = 16;
const LIMITS: ControlLimits = {
  /** A description of a megabyte in base64, plus the rest of the body. */
  bodyBytesMax: 1_500_000,
  connectionsMax: 1_024,
  connectionsPerAddressMax: 256,
  streamsMax: 0,
  requestMsMax: 30_000,
  keepAliveMs: 5_000,
};

interface ApiServerOptions {
  readonly host: LedgerService;
  readonly log: Log;
}

export class ApiServer {
  readonly #host: LedgerService;

  private constructor(host: LedgerService) {
    this.#host = host;
  }

  static listen(
    listen: LedgerConfig["api"],
    { host, log }: ApiServerOptions,
  ): Promise<ControlServer> {
    const api = new ApiServer(host);
    return ControlServer.listen(listen, {
      log,
      routes: api.#routes(),
      limits: LIMITS,
      alive: () => ({ ok: true, ready: host.ready }),
      ready: () => readiness(host.ready, host.isDraining, host.problem, host.clockWarning),
      metrics: () => [...ledgerMetrics(host.status()), ...host.metricsAbove],
      work: () => host.background.list(),
      unavailable: () => (host.ready ? null : "the node is starting or going down; ask another"),
      upgrade: {
        path: "/v1/stream",
        protocol: STREAM_PROTOCOL,
        serve: (socket, requester) => stream(socket, host, requester),
      },
      onFailure: (route, error) =>
        log.event("error", "request.failed", { route, problem: errorText(error) }),
    });
  }

  #routes(): Readonly<Record<string, Handler>> {
    const host = this.#host;
    return {
      ...(acceptsWrites(host) ? this.#writes() : {}),
      "GET /v1/jobs/:id": ({ params, query, requester }) =>
        this.#job(params["id"] ?? "", query, requester),
      "GET /v1/jobs": ({ query }) => this.#jobs(query),
      "GET /v1/status": () => json(host.status()),
      "GET /v1/groups": ({ query }) => json({ groups: this.#groups(query) }),
      "POST /v1/replace": async (request) =>
        this.#replace(readReplacement(await request.json()), request.requester),
      "GET /v1/audit": ({ query }) => this.#audit(query),
      ...Object.fromEntries(
        Object.entries(host.viewsAbove).map(([name, view]) => [
          `GET /v1/debug/${name}`,
          () => json({ [name]: view() }),
        ]),
      ),
    };
  }

  #writes(): Readonly<Record<string, Handler>> {
    const host = this.#host;
    return {
      "POST /v1/jobs": async (request) =>
        this.#ask(readSubmission(await request.json()), request.requester),
      "POST /v1/jobs/:id/events": async (request) => {
        const source = { node: host.config.name, wallMs: host.wall() };
        const event = readEvent(await request.json(), request.params["id"] ?? "", source);
        return this.#ask(event, request.requester);
      },
    };
  }

  async #ask(read: Read<LedgerRequest>, requester: AuditRequester): Promise<Answer> {
    if (!read.ok) throw new HttpError(400, read.problem);
    const answer = await this.#answer(read.value, requester);
    const entry = writeEntry(read.value, answer, requester);
    if (entry !== null) this.#host.note(entry);
    return toAnswer(answerJson(answer));
  }

  #answer(request: LedgerRequest, requester: AuditRequester): Promise<LedgerAnswer> {
    const host = this.#host;
    return new Promise((resolve) =>
      host.request(request, requester, (answer) => resolve(redactAnswer(answer, host.redactSpec))),
    );
  }

  async #job(jobId: string, query: URLSearchParams, requester: AuditRequester): Promise<Answer> {
    const read = readRead(jobId, query);
    if (!read.ok) throw new HttpError(400, read.problem);
    return toAnswer(answerJson(await this.#answer(read.value, requester)));
  }

  #jobs(query: URLSearchParams): Answer {
    const read = readJobQuery(query);
    if (!read.ok) throw new HttpError(400, read.problem);
    return json(this.#host.node?.list(read.value) ?? { jobs: [], more: false });
  }

  #groups(query: URLSearchParams): readonly unknown[] {
    const { node } = this.#host;
    const limit = wholeNumber(query, "limit", 1_000);
    if (limit === null) throw new HttpError(400, "limit must be a whole number");
    return node === null ? [] : groupViews(node, query.get("prefix") ?? "", limit);
  }

  /** Replaces a node group by group; a repetition continues where the last one stopped. (VSR-27) */
  async #replace(read: Read<Replacement>, requester: AuditRequester): Promise<Answer> {
    if (!read.ok) throw new HttpError(400, read.problem);
    const { leaving, joining } = read.value;
    const { node } = this.#host;
    const failed: { group: string; why: string }[] = [];
    const groups = node === null ? [] : [...groupsOf(node, leaving)];
    const total = groups.length;
    const work = async (): Promise<void> => {
      for (let next = groups.pop(); next !== undefined; next = groups.pop()) {
        const { group } = next;
        const eventId = `replace/${leaving}/${joining}`;
        const order = { kind: "replace", group, eventId, leaving, joining } as const;
        const answer = await this.#answer(order, requester);
        if (answer.kind === "committed") continue;
        failed.push({ group, why: String(answerJson(answer).body["error"]) });
      }
    };
    await Promise.all(Array.from({ length: REPLACED_AT_ONCE }, work));
    const replaced = total - failed.length;
    const detail = { joining, replaced, failed: failed.length };
    this.#host.note({ kind: "ledger.replaced", subject: leaving, requester, detail });
    return json({ answer: "replaced", replaced, failed });
  }

  async #audit(query: URLSearchParams): Promise<Answer> {
    const from = time(query, "from", 0);
    const to = time(query, "to", Number.MAX_SAFE_INTEGER);
    const limit = wholeNumber(query, "limit", 1_000);
    if (limit === null || limit < 1) throw new HttpError(400, "limit must be a whole number");
    const jobId = query.get("job");
    const page = await this.#host.audit({
      ...{ from, to, jobId },
      limit: Math.min(limit, AUDIT_EVENTS_MAX),
    });
    const events = page.events.map(({ jobId: job, event, archived }) => ({
      jobId: job,
      ...trailJson(event),
      archived,
    }));
    return json({ events, truncated: page.truncated });
  }
}

function time(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(value)) return value;
  throw new HttpError(400, `${name} "${text}": write 2026-01-31T12:00:00Z, or milliseconds`);
}

function stream(socket: Duplex, host: LedgerService, requester: AuditRequester): void {
  // The socket of an upgraded request is a TCP connection; Node types it as any stream.
  const connection = socket as Socket;
  connection.setNoDelay(true);
  serveStream(connection, host, requester);
}

function toAnswer({ status, body }: JsonAnswer): Answer {
  return json(body, status);
}
