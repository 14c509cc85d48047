/** Time to wait before the next attempt. */

import { RETRY_AFTER_MS_MAX, RETRY_MS_MAX, RETRY_MS_MIN } from "../limits.ts";

/**
 * Doubles with every attempt; half of it is random (`chance` in 0 … 1), so that many clients of one server do not
 * return together. A pause requested by the server is kept in full.
 */
export function retryWaitMs(tries: number, chance: number, afterMs: number | null): number {
  if (afterMs !== null) return Math.min(afterMs, RETRY_AFTER_MS_MAX);
  const fullMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(tries - 1, 16));
  return fullMs / 2 + (fullMs / 2) * chance;
}

/** `Retry-After`: seconds, or a date; null when it is neither. (RFC 9110 10.2.3) */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
