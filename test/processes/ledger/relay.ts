/**
 * A user-space wire between two nodes, one per direction: bytes from `from` to `to` pass here, or wait here while the
 * link is cut. Waiting bytes are delivered late when it heals, as TCP does.
 */

import { connect, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly inner: Socket;
  readonly outer: Socket;
}

export class Relay {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #cut = false;
  #frozen = false;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = createServer((inner) => {
      const outer = connect({ ...target });
      const pair = { inner, outer };
      this.#pairs.add(pair);
      const end = (): void => {
        this.#pairs.delete(pair);
        inner.destroy();
        outer.destroy();
      };
      inner.setNoDelay(true);
      outer.setNoDelay(true);
      inner.on("data", (bytes) => outer.write(bytes));
      outer.on("data", (bytes) => inner.write(bytes));
      for (const socket of [inner, outer]) {
        socket.on("error", end);
        socket.on("close", end);
      }
      if (this.#cut || this.#frozen) inner.pause();
      if (this.#frozen) outer.pause();
    });
  }

  static listen(listen: string, target: string): Promise<Relay> {
    const relay = new Relay(endpoint(target));
    return new Promise((resolve, reject) => {
      relay.#server.once("error", reject);
      relay.#server.listen(endpoint(listen), () => resolve(relay));
    });
  }

  cut(): void {
    this.#cut = true;
    for (const { inner } of this.#pairs) inner.pause();
  }

  /** Both directions: connections stay open, new ones are accepted, and nothing passes. */
  freeze(): void {
    this.#frozen = true;
    for (const { inner, outer } of this.#pairs) {
      inner.pause();
      outer.pause();
    }
  }

  heal(): void {
    this.#cut = false;
    this.#frozen = false;
    for (const { inner, outer } of this.#pairs) {
      inner.resume();
      outer.resume();
    }
  }

  close(): Promise<void> {
    for (const { inner, outer } of this.#pairs) {
      inner.destroy();
      outer.destroy();
    }
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

function endpoint(text: string): { readonly host: string; readonly port: number } {
  const [host = "", port = "0"] = text.split(":");
  return { host, port: Number(port) };
}

/** A relay before a port of this machine, and where it listens. */
export async function relayTo(port: number): Promise<readonly [Relay, number]> {
  const at = await freePort();
  return [await Relay.listen(`127.0.0.1:${at}`, `127.0.0.1:${port}`), at];
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}
