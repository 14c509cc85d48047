/** Destination and handshake of a WebSocket, built once per call site. */

import type { Duration } from "../../core/base/duration.ts";
import { type CallTimeouts, timeoutsOf } from "../call.ts";
import type {
  AuthPart,
  CookiesPart,
  HeadersPart,
  HeaderValues,
  ParamValues,
} from "../http/parts.ts";
import { type ParamsPart, UrlPart } from "../http/parts.ts";
import { compose, timeoutMsOf } from "../http/request.ts";
import { type Origin, originOf } from "../net/origin.ts";
import type { Route } from "../net/route.ts";
import type { CallSettings } from "../protocol.ts";

export interface ConnectOptions {
  readonly headers?: HeaderValues | HeadersPart;
  readonly params?: ParamValues | ParamsPart;
  readonly auth?: AuthPart;
  readonly cookies?: CookiesPart;
  /** Subprotocols to offer, the preferred one first. */
  readonly protocols?: readonly string[];
  /** Offers compression of messages (permessage-deflate). */
  readonly compress?: boolean;
  /** Timeout of the whole call; overrides the workflow's. */
  readonly timeout?: Duration;
}

export class Handshake {
  readonly origin: Origin;
  /** Equal keys share a connection of the virtual user. */
  readonly key: string;
  readonly href: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocols: readonly string[];
  readonly compress: boolean;

  constructor(target: string | UrlPart, options: ConnectOptions) {
    const url = typeof target === "string" ? endpointOf(target, null) : target;
    const { headers, params, auth, cookies } = options;
    // The same rules and checks as for any HTTP request.
    const request = compose("GET", url, {
      ...(headers === undefined ? {} : { headers }),
      ...(params === undefined ? {} : { params }),
      ...(auth === undefined ? {} : { auth }),
    });
    const fromParts = cookies === undefined ? [] : [["cookie", cookies.text] as const];
    this.origin = originOf(url, url.route);
    this.href = `${url.secure ? "wss" : "ws"}://${url.authority}${request.path}`;
    this.headers = Object.fromEntries([...request.headers, ...fromParts]);
    this.protocols = options.protocols ?? [];
    this.compress = options.compress ?? false;
    this.key = JSON.stringify([this.href, this.headers, this.protocols, this.compress]);
  }

  /** Human-readable. */
  get shown(): string {
    return requestText(this);
  }
}

/** Omits the headers that the WebSocket itself adds. */
function requestText({ headers, href, protocols }: Handshake): string {
  const offered = protocols.length === 0 ? [] : [["sec-websocket-protocol", protocols.join(", ")]];
  const lines = [...Object.entries(headers), ...offered].map(
    ([name, value]) => `${name}: ${value}`,
  );
  return [`GET ${href}`, ...lines].join("\r\n");
}

/** Resolves the address and the route of a WebSocket. */
export function endpointOf(text: string, route: Route | null): UrlPart {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return new UrlPart(text, route);
  throw new TypeError(`"${text}" has no scheme: write ws://${text} or wss://${text}`);
}

/** Throws for an invalid timeout, like any mistake in a workflow. */
export function timeoutsFor(timeout: Duration | undefined, settings: CallSettings): CallTimeouts {
  return timeoutsOf(timeout === undefined ? null : timeoutMsOf(timeout), settings);
}
