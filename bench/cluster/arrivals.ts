/** A target that keeps when each request came, and from which executor core. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";

/** Of one job; what comes beyond is counted by nobody. */
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

  /** Forgets what came; resolves with the moment of the next request. */
  next(): Promise<number> {
    this.#arrivals = [];
    return new Promise((resolve) => {
      this.#first = resolve;
    });
  }

  get count(): number {
    return this.#arrivals.length;
  }

  /** When each core was heard first, in order. */
  beginnings(): readonly number[] {
    return [...this.#byCore().values()].map(([first = 0]) => first).sort((a, b) => a - b);
  }

  /** Those that were heard since. */
  cores(since = 0): ReadonlySet<string> {
    return new Set(this.#arrivals.filter(({ at }) => at >= since).map(({ core }) => core));
  }

  /** When a core was heard first that is none of these; null: never. */
  firstOfOthers(known: ReadonlySet<string>, since = 0): number | null {
    return this.#arrivals.find(({ at, core }) => at >= since && !known.has(core))?.at ?? null;
  }

  /** When one of these was heard last; null: never. */
  lastOf(cores: ReadonlySet<string>): number | null {
    return this.#arrivals.findLast(({ core }) => cores.has(core))?.at ?? null;
  }

  /** The longest time that one of these cores was not heard; one that is never heard again is silent to the end. */
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
