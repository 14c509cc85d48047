/** Something to load that counts by itself: how many requests came, and which rows of a feed came more than once. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";

export class CountingTarget {
  readonly url: string;
  readonly #server: Server;
  readonly #rows = new Set<string>();
  #requests = 0;
  #repeated = 0;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
    server.on("request", ({ url: path = "/" }, response) => {
      this.#requests++;
      if (path.startsWith("/row/")) this.#onRow(path);
      response.end("ok");
    });
  }

  static async start(host: string): Promise<CountingTarget> {
    const server = createServer({ keepAliveTimeout: 60_000 }).listen(0, host);
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new CountingTarget(server, `http://${host}:${port}`);
  }

  get requests(): number {
    return this.#requests;
  }

  get rowsRepeated(): number {
    return this.#repeated;
  }

  /** Another job begins: its rows have the same numbers. */
  reset(): void {
    this.#rows.clear();
    this.#requests = 0;
    this.#repeated = 0;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #onRow(path: string): void {
    if (this.#rows.has(path)) this.#repeated++;
    this.#rows.add(path);
  }
}
