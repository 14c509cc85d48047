/** A target that records when each request arrived, and from which executor core. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";

/** Recorded arrivals of one job; further ones are not counted. */
const ARRIVALS_MAX = 1_000_000;

interface Arrival {
  /** On this process's monotonic clock. */
  readonly at: number;
  readonly core: string;
}

export class ArrivalTarget {
  readonly url: string;
  readonly #server: Server;
  #arrivals: Arrival[] = [];
  #first: (at: number) => void = () => undefined;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
    server.on("request", ({ url: path = "/" }, response) => {
      const at = performance.now();
      if (this.#arrivals.length === 0) this.#first(at);
      if (this.#arrivals.length < ARRIVALS_MAX) this.#arrivals.push({ at, core: path.slice(1) });
      response.end("ok");
    });
  }

  static async start(): Promise<ArrivalTarget> {
    const server = createServer({ keepAliveTimeout: 60_000 }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new ArrivalTarget(server, `http://127.0.0.1:${port}`);
  }

  /** Clears the record; resolves with the time of the next request. */
  next(): Promise<number> {
    this.#arrivals = [];
    return new Promise((resolve) => {
      this.#first = resolve;
    });
  }

  get count(): number {
    return this.#arrivals.length;
  }

  /** When each core was first seen, in order. */
  beginnings(): readonly number[] {
    return [...this.#byCore().values()].map(([first = 0]) => first).sort((a, b) => a - b);
  }

  /** Cores seen since then. */
  cores(since = 0): ReadonlySet<string> {
    return new Set(this.#arrivals.filter(({ at }) => at >= since).map(({ core }) => core));
  }

  /** When a core other than these was first seen; null: never. */
  firstOfOthers(known: ReadonlySet<string>, since = 0): number | null {
    return this.#arrivals.find(({ at, core }) => at >= since && !known.has(core))?.at ?? null;
  }

  /** When one of these was last seen; null: never. */
  lastOf(cores: ReadonlySet<string>): number | null {
    return this.#arrivals.findLast(({ core }) => cores.has(core))?.at ?? null;
  }

  /** The longest silence of one of these cores; one that is never seen again is silent to the end. */
  longestGapMs(from: number, to: number, among: ReadonlySet<string>): number {
    const byCore = this.#byCore();
    let longest = 0;
    for (const core of among) {
      let before = from;
      for (const at of [...(byCore.get(core) ?? []).filter((at) => at > from && at < to), to]) {
        longest = Math.max(longest, at - before);
        before = at;
      }
    }
    return longest;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #byCore(): ReadonlyMap<string, number[]> {
    const cores = new Map<string, number[]>();
    for (const { at, core } of this.#arrivals) {
      const times = cores.get(core);
      if (times === undefined) cores.set(core, [at]);
      else times.push(at);
    }
    return cores;
  }
}
