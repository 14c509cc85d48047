/** The server of a combination: it stalls and fails by a schedule, and keeps a log of its own. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Part, Span } from "./grammar.ts";

export interface Logged {
  readonly workflow: string;
  readonly step: string;
  readonly receivedAt: number;
  /** NaN until it was answered. */
  answeredAt: number;
  readonly status: number;
}

const ANSWER_MS = 4;

export class Target {
  readonly log: Logged[] = [];
  /** The first moment at which anything of a workflow happened: its plan began then. */
  readonly began = new Map<string, number>();
  readonly #parts: ReadonlyMap<string, Part>;
  readonly #server = createServer((request, response) => this.#heard(request.url ?? "", response));

  constructor(parts: readonly Part[]) {
    this.#parts = new Map(parts.map((part) => [part.name, part]));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Something of this workflow happens now. */
  touch(workflow: string): number {
    const now = performance.now();
    if (!this.began.has(workflow)) this.began.set(workflow, now);
    return now - (this.began.get(workflow) ?? now);
  }

  #heard(path: string, response: ServerResponse): void {
    const [, workflow = "", step = ""] = path.split("/");
    const part = this.#parts.get(workflow);
    const atMs = this.touch(workflow);
    const failing = part !== undefined && within(part.failures, atMs) && step !== "setup";
    const status = failing ? 500 : 200;
    const entry = { workflow, step, receivedAt: performance.now(), answeredAt: Number.NaN, status };
    this.log.push(entry);
    const held =
      part !== undefined && within(part.stall, atMs) ? (part.stall?.toMs ?? 0) - atMs : 0;
    setTimeout(() => {
      response.statusCode = status;
      response.end("answered");
      entry.answeredAt = performance.now();
    }, ANSWER_MS + held);
  }
}

function within(span: Span | null, atMs: number): boolean {
  return span !== null && atMs >= span.fromMs && atMs < span.toMs;
}
