/**
 * A streamed answer: one JSON line per event (ndjson), or server-sent events for pages. A reader that falls behind by
 * more than the bound is disconnected: a slow one never blocks what it watches.
 */

import type { ServerResponse } from "node:http";

export interface EventStreamOptions {
  readonly format: "lines" | "server-sent";
  /** Bytes that may be queued for the reader. */
  readonly backlogBytesMax: number;
  /** Interval of comments that keep a quiet stream open through proxies; server-sent only. */
  readonly beatMs?: number;
}

export class EventStream {
  readonly #response: ServerResponse;
  readonly #options: EventStreamOptions;
  readonly #beat: NodeJS.Timeout | undefined;
  #open = true;

  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response;
    this.#options = options;
    const { format, beatMs } = options;
    const type = format === "lines" ? "application/x-ndjson" : "text/event-stream";
    response.writeHead(200, { "content-type": type, "cache-control": "no-store" });
    response.flushHeaders();
    if (format === "server-sent") response.write(": following\n\n");
    if (beatMs !== undefined) this.#beat = setInterval(() => this.#write(": beat\n\n"), beatMs);
    this.onClose(() => {
      this.#open = false;
      clearInterval(this.#beat);
    });
  }

  get open(): boolean {
    return this.#open;
  }

  onClose(listener: () => void): void {
    this.#response.once("close", listener);
  }

  /** `text` is JSON; serialised once for all readers of the same event. */
  send(event: string, text: string): void {
    const lines = this.#options.format === "lines";
    this.#write(lines ? `${text}\n` : `event: ${event}\ndata: ${text}\n\n`);
  }

  end(): void {
    this.#open = false;
    this.#response.end();
  }

  #write(text: string): void {
    if (!this.#open) return;
    this.#response.write(text);
    if (this.#response.writableLength > this.#options.backlogBytesMax) this.#response.destroy();
  }
}
