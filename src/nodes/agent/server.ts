/**
 * The agent's control interface: small, JSON over HTTP, meant for this machine.
 *
 *     GET  /v1/members  /v1/status  /v1/keys  /metrics  /healthz  /readyz
 *     GET  /v1/debug/vivaldi/coordinate  /v1/debug/vivaldi/peers  /v1/debug/peers/unconfirmed
 *     GET  /v1/events                  one JSON line per event until the reader goes
 *     POST /v1/join {"addresses"}  /v1/leave  /v1/force-leave {"name"}  /v1/keys/reload
 *
 * Who may use it is the affair of host/control; the configuration refuses to start without a token off
 * the loopback.
 */

import { errorText } from "../../core/base/error-text.ts";
import type { Background } from "../../host/background.ts";
import { EventStream } from "../../host/control/event-stream.ts";
import { HttpError } from "../../host/control/http-error.ts";
import {
  type ControlLimits,
  type ControlListen,
  ControlServer,
  type Handler,
  json,
} from "../../host/control/server.ts";
import type { AuditRequester } from "../../host/ports/audit.ts";
import type { Log } from "../../host/ports/log.ts";
import { type Agent, JoinError } from "./agent.ts";
import type { AgentEvent } from "./events.ts";
import { agentMetrics } from "./metrics.ts";
import { coordinateView, peersView, unconfirmedView } from "./peer-metrics.ts";

const SUBSCRIBERS_MAX = 64;
/**
 * A reader of events that lags this far behind is cut off: a slow one never holds membership up.
 * (B-52f)
 */
const SUBSCRIBER_BACKLOG_BYTES_MAX = 1_048_576;
const LIMITS: ControlLimits = {
  bodyBytesMax: 65_536,
  connectionsMax: 2 * SUBSCRIBERS_MAX,
  connectionsPerAddressMax: SUBSCRIBERS_MAX + SUBSCRIBERS_MAX / 2,
  streamsMax: SUBSCRIBERS_MAX,
  requestMsMax: 10_000,
  keepAliveMs: 5_000,
};

interface AgentServerOptions {
  readonly agent: Agent;
  readonly log: Log;
  readonly background: Background;
  /** Leave requested over the interface: answer first, then leave. */
  readonly onLeave: (requester: AuditRequester) => void;
}

export class AgentServer {
  readonly #subscribers = new Set<EventStream>();
  #server: ControlServer | null = null;

  private constructor() {}

  static async listen(listen: ControlListen, options: AgentServerOptions): Promise<AgentServer> {
    const server = new AgentServer();
    const { agent, log, background } = options;
    server.#server = await ControlServer.listen(listen, {
      log,
      routes: { ...routesOf(options), "GET /v1/events": (request) => server.#subscribe(request) },
      limits: LIMITS,
      alive: () => ({ ok: true, leaving: agent.status().leaving }),
      ready: () => ({ ready: !agent.status().leaving }),
      metrics: () => agentMetrics(agent),
      work: () => background.list(),
      onFailure: (route, error) =>
        log.event("error", "request.failed", { route, problem: errorText(error) }),
    });
    return server;
  }

  get control(): ControlServer | null {
    return this.#server;
  }

  publish(event: AgentEvent): void {
    if (this.#subscribers.size === 0) return;
    const text = JSON.stringify(event);
    for (const reader of this.#subscribers) reader.send(event.event, text);
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  #subscribe(request: Parameters<Handler>[0]): "taken" {
    const stream = new EventStream(request.takeResponse(), {
      format: "lines",
      backlogBytesMax: SUBSCRIBER_BACKLOG_BYTES_MAX,
    });
    this.#subscribers.add(stream);
    stream.onClose(() => this.#subscribers.delete(stream));
    return "taken";
  }
}

function routesOf(options: AgentServerOptions): Readonly<Record<string, Handler>> {
  const { agent } = options;
  return {
    "GET /v1/members": () => json(agent.members()),
    "GET /v1/status": () => json(agent.status()),
    "GET /v1/keys": () => json(agent.keys()),
    "GET /v1/debug/vivaldi/coordinate": () => json(coordinateView(agent)),
    "GET /v1/debug/vivaldi/peers": () => json({ peers: peersView(agent) }),
    "GET /v1/debug/peers/unconfirmed": () => json({ peers: unconfirmedView(agent, agent.wall) }),
    "POST /v1/keys/reload": ({ requester }) => json(reload(agent, requester)),
    "POST /v1/join": async (request) => {
      const addresses = textsOf(await request.json(), "addresses");
      return json({ trying: await join(agent, addresses, request.requester) });
    },
    "POST /v1/force-leave": async (request) =>
      json(forceLeave(agent, await request.json(), request.requester)),
    "POST /v1/leave": ({ requester }) => {
      setImmediate(() => options.onLeave(requester));
      return json({ leaving: true });
    },
  };
}

async function join(
  agent: Agent,
  addresses: readonly string[],
  requester: AuditRequester,
): Promise<readonly string[]> {
  try {
    return await agent.join(addresses, requester);
  } catch (error) {
    if (error instanceof JoinError) throw new HttpError(400, error.message);
    throw error;
  }
}

function forceLeave(
  agent: Agent,
  body: unknown,
  requester: AuditRequester,
): { readonly name: string } {
  const name = textOf(body, "name");
  const member = agent.members().find((known) => known.name === name);
  if (member === undefined) throw new HttpError(404, `no member is called "${name}"`);
  if (member.state !== "dead" && member.state !== "left") {
    throw new HttpError(409, `"${name}" is ${member.state}: only a failed member can be removed`);
  }
  agent.forceLeave(name, requester);
  return { name };
}

function reload(agent: Agent, requester: AuditRequester): unknown {
  try {
    return agent.reloadKeys(requester);
  } catch (error) {
    throw new HttpError(409, errorText(error));
  }
}

function textOf(body: unknown, field: string): string {
  const value = fieldOf(body, field);
  if (typeof value !== "string" || value === "" || value.length > 256) {
    throw new HttpError(400, `"${field}" must be a text`);
  }
  return value;
}

function textsOf(body: unknown, field: string): readonly string[] {
  const value = fieldOf(body, field);
  const texts = Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  if (!Array.isArray(value) || texts.length !== value.length || texts.length === 0) {
    throw new HttpError(400, `"${field}" must be a list of texts`);
  }
  if (texts.length > 64) throw new HttpError(400, `"${field}" has more than 64 entries`);
  return texts;
}

function fieldOf(body: unknown, field: string): unknown {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, field)) return undefined;
  return (body as Record<string, unknown>)[field];
}
