/** Back-end on this machine that answers as a test wants, and records what it was sent. */

import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface StubRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Decompressed. */
  readonly body: Buffer;
}

export interface StubAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** "hang": accepts the request and never answers. */
type Behaviour = (request: StubRequest, number: number) => StubAnswer | "hang";

export class StubServer {
  readonly requests: StubRequest[] = [];
  readonly #server: Server;
  behaviour: Behaviour = () => ({ status: 204 });

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const sent = Buffer.concat(parts);
      const packed = request.headers["content-encoding"] === "gzip";
      const seen: StubRequest = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body: packed ? gunzipSync(sent) : sent,
      };
      this.requests.push(seen);
      const answer = this.behaviour(seen, this.requests.length);
      if (answer === "hang") return;
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body ?? "");
    });
  }

  static async start(): Promise<StubServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new StubServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** All bodies, concatenated. */
  get text(): string {
    return this.requests.map(({ body }) => body.toString("utf8")).join("");
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
