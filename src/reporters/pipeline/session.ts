/**
 * Payloads over a persistent connection, opened on demand and reopened after a failure. A back-end supplies how to open
 * one, how to write, and which errors are permanent.
 */

import { errorText } from "../../core/base/error-text.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { RefusedError, type SendOutcome, type Transport } from "./delivery.ts";
import type { Payload } from "./payload-queue.ts";

/** Time for a connection to close gracefully. */
const END_MS_MAX = 1_000;

export interface Session {
  write(body: Buffer): Promise<void>;
  /** Closes gracefully: everything written has arrived. */
  close(): Promise<void>;
  /** Closes immediately. */
  destroy(): void;
}

interface SessionOptions {
  readonly prepare?: () => Promise<void>;
  /** The signal aborts the attempt: a connection opened by then is closed. */
  readonly open: (signal: AbortSignal) => Promise<Session>;
  /** Whether the same payload would be rejected again. */
  readonly isRefusal: (error: unknown) => boolean;
}

export class SessionTransport implements Transport {
  readonly #options: SessionOptions;
  #session: Session | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  async prepare(): Promise<void> {
    await this.#options.prepare?.();
  }

  async send({ body }: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const end = new AbortController();
    const timer = setTimeout(
      () => end.abort(new Error(`it did not answer within ${REQUEST_MS_MAX / 1_000} s`)),
      REQUEST_MS_MAX,
    );
    const stop = (): void => end.abort(signal.reason);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    try {
      await Promise.race([this.#write(Buffer.from(body), end.signal), aborted(end.signal)]);
      return { kind: "ok" };
    } catch (error) {
      this.#session?.destroy();
      this.#session = undefined;
      // A connection rejected while opening has no session to close it: the signal does.
      end.abort(error);
      const problem = errorText(error);
      return error instanceof RefusedError || this.#options.isRefusal(error)
        ? { kind: "refused", problem }
        : { kind: "retry", problem, afterMs: null };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, END_MS_MAX);
    });
    await Promise.race([session.close().catch(() => {}), late]);
    clearTimeout(timer);
    session.destroy();
  }

  async #write(body: Buffer, signal: AbortSignal): Promise<void> {
    if (this.#session === undefined) {
      const opened = await this.#options.open(signal);
      if (signal.aborted) {
        opened.destroy();
        return;
      }
      this.#session = opened;
    }
    await this.#session.write(body);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
