/**
 * Payloads over a connection that is kept: made when it is needed, and made again when something went wrong
 * with it. What a back-end brings along is how to open one, how to write, and which errors will not pass.
 */

import { errorText } from "../../core/base/error-text.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { RefusedError, type SendOutcome, type Transport } from "./delivery.ts";
import type { Payload } from "./payload-queue.ts";

/** What a connection may take to end in order. */
const END_MS_MAX = 1_000;

export interface Session {
  write(body: Buffer): Promise<void>;
  /** In order: what was written has arrived. */
  close(): Promise<void>;
  /** At once. */
  destroy(): void;
}

interface SessionOptions {
  readonly prepare?: () => Promise<void>;
  /** The signal says that nobody waits any more: what was opened until then is ended. */
  readonly open: (signal: AbortSignal) => Promise<Session>;
  /** Whether the same payload would be refused again. */
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
      // One that was refused while it was opened is nobody's session: the signal ends it.
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
