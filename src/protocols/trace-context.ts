/**
 * W3C trace context of one virtual user: a new trace for each sampled iteration, and a new span for each call in it.
 * Requests of other iterations are sent unchanged, from bytes prepared in advance. (www.w3.org/TR/trace-context,
 * version 00: "00-<trace id>-<span id>-01")
 */

import { randomFillSync } from "node:crypto";

export const TRACEPARENT = "traceparent";

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Bytes of randomness drawn at once: asking the system for a few costs as much as for many. */
const POOL_BYTES = 4_096;

export class TraceContext {
  /** Share of traced iterations, from 0 to 1. */
  readonly #share: number;
  /** "00-<trace id>-" of the current iteration; "" where it is not traced. */
  #prefix = "";

  constructor(share: number) {
    this.#share = share;
  }

  /** Starts an iteration. */
  begin(): void {
    this.#prefix = Math.random() < this.#share ? `00-${randomId(TRACE_ID_BYTES)}-` : "";
  }

  /** Ends the iteration; calls outside of iterations belong to no trace. */
  end(): void {
    this.#prefix = "";
  }

  /** Returns the header for the next call; "" when it is not traced. */
  next(): string {
    return this.#prefix === "" ? "" : `${this.#prefix}${randomId(SPAN_ID_BYTES)}-01`;
  }
}

/** Parses the ids of a header that `next` returned. */
export function idsOf(traceparent: string): { readonly traceId: string; readonly spanId: string } {
  const [, traceId = "", spanId = ""] = traceparent.split("-");
  return { traceId, spanId };
}

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** Never all zeros, which the standard forbids; the system's generator does not produce that in practice. */
function randomId(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString("hex", used - bytes, used);
}
