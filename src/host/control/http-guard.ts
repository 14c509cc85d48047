/**
 * Who may use a control interface. A page in a browser may not: a request that carries an Origin, or a
 * Host that is not ours, is refused. Off the loopback a bearer token is needed.
 */

import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
}

export function guardHttp(
  request: IncomingMessage,
  { host, token }: { readonly host: string; readonly token: string | null },
): HttpRefusal | null {
  if (request.headers.origin !== undefined) return { status: 403, message: "not for web pages" };
  if (token === null) {
    const named = (request.headers.host ?? "").replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
    // A name that resolves to us is how a web page would get here; numbers cannot be rebound.
    if (named === host || named === "localhost") return null;
    return { status: 403, message: `"${named}" is not this agent's address` };
  }
  const given = Buffer.from(request.headers.authorization ?? "");
  const expected = Buffer.from(`Bearer ${token}`);
  if (given.length === expected.length && timingSafeEqual(given, expected)) return null;
  return { status: 401, message: "a bearer token is needed" };
}
