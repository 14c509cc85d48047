/** The server of a combination: it stalls and fails by a schedule, and keeps its own log. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Logged {
  readonly workflow: string;
  readonly step: string;
  /** Key that the call adds behind its step; empty if it adds none. */
  readonly key: string;
  readonly receivedAt: number;
  /** NaN until it was answered. */
  answeredAt: number;
  readonly status: number;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  /** Infinity: never. */
  readonly afterMs: number;
}

/** How a call is answered, `atMs` after the start of its workflow. */
type Schedule = (call: Pick<Logged, "workflow" | "step" | "key">, atMs: number) => Answer;

const TICK_MS = 5;
/** Around a call: connecting and reading are turns of the loop that the log does not see. */
const AROUND_MS = 50;
/** Turns of the loop between what one side did and what the other side saw: connect, accept, read. */
const TURNS = 3;
const LEAST_MS = 3;
/** Ticks without a further request after which all have been read. */
const SETTLED_TICKS = 4;

export class Target {
  readonly log: Logged[] = [];
  /** The first time anything of a workflow happened: its plan began then. */
  readonly began = new Map<string, number>();
  readonly #schedule: Schedule;
  readonly #server = createServer((request, response) => this.#heard(request.url ?? "", response));
  /** Moments at which the loop came round: how long a turn took is how far two sides can be apart. */
  readonly #ticks: number[] = [];
  #ticking: NodeJS.Timeout | undefined;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  async listen(): Promise<string> {
    // On a busy machine connections rest for long: one that is closed then fails the next call.
    this.#server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#ticks.push(performance.now());
    this.#ticking = setInterval(() => this.#ticks.push(performance.now()), TICK_MS);
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Reads what was sent before the end of a run and waits in its sockets: a busy machine may be late with it. */
  async settle(): Promise<void> {
    for (let quiet = 0, known = this.log.length; quiet < SETTLED_TICKS; quiet++) {
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      if (this.log.length > known) quiet = 0;
      known = this.log.length;
    }
  }

  close(): void {
    clearInterval(this.#ticking);
    this.#ticks.push(performance.now());
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Something of this workflow happens now. */
  touch(workflow: string): number {
    const now = performance.now();
    if (!this.began.has(workflow)) this.began.set(workflow, now);
    return now - (this.began.get(workflow) ?? now);
  }

  /**
   * How far apart the two sides may have seen what happened in this time: both share one event loop,
   * and the log says itself how long its turns took then.
   */
  apartMs(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): number {
    let longest = 0;
    for (let at = 1; at < this.#ticks.length; at++) {
      const [began = 0, ended = 0] = [this.#ticks[at - 1], this.#ticks[at]];
      if (ended < from - AROUND_MS) continue;
      if (began > to + AROUND_MS) break;
      longest = Math.max(longest, ended - began);
    }
    return LEAST_MS + TURNS * longest;
  }

  /** Duration of the loop's turn that includes this time. */
  turnMs(moment: number): number {
    const after = this.#ticks.findIndex((tick) => tick >= moment);
    return (this.#ticks[after] ?? moment) - (this.#ticks[after - 1] ?? moment);
  }

  #heard(path: string, response: ServerResponse): void {
    const [, workflow = "", step = "", key = ""] = path.split("/");
    const { afterMs, status, text } = this.#schedule({ workflow, step, key }, this.touch(workflow));
    const receivedAt = performance.now();
    const entry = { workflow, step, key, receivedAt, answeredAt: Number.NaN, status };
    this.log.push(entry);
    if (afterMs === Number.POSITIVE_INFINITY) return;
    setTimeout(() => {
      // Taken before the response leaves, so receivers see it later.
      entry.answeredAt = performance.now();
      response.statusCode = status;
      response.end(text);
    }, afterMs);
  }
}
