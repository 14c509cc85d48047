/**
 * Time limit on user code outside the steps. Shortly before it expires the code is notified through its signal, so that
 * it can save what it has; at the end it is abandoned.
 *
 *   begins ──────────────────────────▶ signal (with the reason) ──notice──▶ abandoned
 */

import inspector from "node:inspector";
import { formatDuration } from "../core/base/duration.ts";
import { clearTimeout, setTimeout } from "../protocols/net/timers.ts";

/** The notice is a fifth of the limit, and at most this. */
const NOTICE_MS_MAX = 1_000;
const NOTICE_SHARE = 0.2;

export function noticeMs(limitMs: number): number {
  return Math.min(NOTICE_MS_MAX, limitMs * NOTICE_SHARE);
}

/** Returns the reason of a signal. */
export function noticeOf(what: string, limitMs: number): Error {
  const left = formatDuration(Math.round(noticeMs(limitMs)));
  return new Error(`${what} has ${left} left of its ${formatDuration(limitMs)}`);
}

export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";
}

export class TimeLimit {
  readonly #what: string;
  readonly #limitMs: number;
  #controller: AbortController | undefined;

  /** `what` opens every message: "setup". */
  constructor(what: string, limitMs: number) {
    this.#what = what;
    this.#limitMs = limitMs;
  }

  /** Created on access: most code never uses it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }

  /** Returns the result of `work`, or fails when it took too long. */
  async run<Value>(work: () => Value | Promise<Value>): Promise<Value> {
    // Code stopped at a breakpoint is not late.
    if (inspector.url() !== undefined) return work();
    const [what, limitMs] = [this.#what, this.#limitMs];
    let end: NodeJS.Timeout | undefined;
    const notice = setTimeout(
      () => this.abort(noticeOf(what, limitMs)),
      limitMs - noticeMs(limitMs),
    );
    const over = new Promise<never>((_, reject) => {
      const message = `${what} took longer than ${formatDuration(limitMs)}, its limit`;
      end = setTimeout(() => reject(new TimeLimitError(message)), limitMs);
    });
    try {
      return await Promise.race([work(), over]);
    } finally {
      clearTimeout(notice);
      clearTimeout(end);
    }
  }
}
