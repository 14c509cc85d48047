/** The sockets opened by a driver's client: their total traffic, and their end. */

import type net from "node:net";
import type { DriverEvents, Traffic } from "./driver-connection.ts";

export class DriverSockets implements Traffic {
  readonly #open = new Set<net.Socket>();
  #bytesRead = 0;
  #bytesWritten = 0;
  #connected = false;
  closed = false;

  /** Without `events` its close is not reported: requests over it fail by themselves. */
  add<Socket extends net.Socket>(socket: Socket, events?: DriverEvents): Socket {
    this.#open.add(socket);
    socket.once("connect", () => {
      if (!this.#connected) events?.connected();
      this.#connected = true;
    });
    socket.on("error", (error) => events?.lost(error));
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#bytesRead += socket.bytesRead;
      this.#bytesWritten += socket.bytesWritten;
      events?.lost(new Error("the server closed the connection"));
    });
    if (this.closed) socket.destroy();
    return socket;
  }

  get bytesRead(): number {
    let sum = this.#bytesRead;
    for (const socket of this.#open) sum += socket.bytesRead;
    return sum;
  }

  get bytesWritten(): number {
    let sum = this.#bytesWritten;
    for (const socket of this.#open) sum += socket.bytesWritten;
    return sum;
  }

  /** Also destroys sockets that are opened later. */
  destroy(): void {
    this.closed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
