/**
 * The W3C trace of one virtual user: a new one for each iteration that is drawn, and a new span for each
 * call in it. What is not drawn goes out as if nobody had asked, in bytes that were made before.
 * (www.w3.org/TR/trace-context, version 00: "00-<trace id>-<span id>-01")
 */

import { randomFillSync } from "node:crypto";

export const TRACEPARENT = "traceparent";

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Drawn at once: asking the system for a few bytes costs as much as for many. */
const POOL_BYTES = 4_096;

export class TraceContext {
  /** Of iterations, from 0 to 1. */
  readonly #share: number;
  /** "00-<trace id>-" of the iteration under way; "" where it carries none. */
  #prefix = "";

  constructor(share: number) {
    this.#share = share;
  }

  /** An iteration begins. */
  begin(): void {
    this.#prefix = Math.random() < this.#share ? `00-${randomId(TRACE_ID_BYTES)}-` : "";
  }

  /** The iteration is over: what is called beside iterations belongs to no trace. */
  end(): void {
    this.#prefix = "";
  }

  /** The header of one more call; "" where it has none. */
  next(): string {
    return this.#prefix === "" ? "" : `${this.#prefix}${randomId(SPAN_ID_BYTES)}-01`;
  }
}

/** The ids in a header that `next` gave. */
export function idsOf(traceparent: string): { readonly traceId: string; readonly spanId: string } {
  const [, traceId = "", spanId = ""] = traceparent.split("-");
  return { traceId, spanId };
}

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** Never all zeros, which the standard forbids: with the generator of the system that does not happen. */
function randomId(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString("hex", used - bytes, used);
}
