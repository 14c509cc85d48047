/** Following a redirect (opt-in): the same call goes on with another request. */

import { redirectOf } from "../http/redirect.ts";
import { clock } from "../net/clock.ts";
import type { Exchange } from "./exchange.ts";
import { WireRequest } from "./wire-request.ts";

/** True when the exchange goes on with the redirect's target. */
export function followRedirect(exchange: Exchange, now: number): boolean {
  const target = redirectOf(exchange.request.source, exchange.status, exchange.location);
  if (target === null) return false;
  const next = new WireRequest(target, exchange.source.settings);
  if (next.origin.address !== undefined) {
    exchange.restart(next, now);
    return true;
  }
  next.origin.prepare(exchange.source).then(
    () => exchange.restart(next, clock()),
    (error: Error) => exchange.fail("dns", error.message, clock()),
  );
  return true;
}
