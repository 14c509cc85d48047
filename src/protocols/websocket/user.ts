/** One virtual user's WebSockets: those that its functions opened, and those of prepared exchanges. */

import type { CallSettings, SessionKey, SessionState } from "../protocol.ts";
import { SOCKETS_PER_USER_MAX } from "./limits.ts";
import { MessageQueue } from "./message-queue.ts";
import { type SocketOwner, UserSocket } from "./socket.ts";
import type { WebsocketTarget } from "./target.ts";

export class WebsocketUser implements SessionState, SocketOwner {
  readonly settings: CallSettings;
  /** What `ws.send` and its kin speak on: the connection opened last. */
  latest: UserSocket | null = null;
  readonly #all = new Set<UserSocket>();
  /** Connections of prepared exchanges by target; they stay open over iterations. */
  readonly #persistent = new Map<string, UserSocket>();
  closed = false;

  constructor(settings: CallSettings) {
    this.settings = settings;
  }

  /** A new connection for functions, with a queue for what comes unasked. */
  open(target: WebsocketTarget): UserSocket {
    return this.#open(target, new MessageQueue());
  }

  /** The connection that all prepared exchanges with this target use. */
  persistent(target: WebsocketTarget): UserSocket {
    let socket = this.#persistent.get(target.key);
    if (socket === undefined) {
      socket = this.#open(target, null);
      this.#persistent.set(target.key, socket);
    }
    return socket;
  }

  /** Closes the connection of prepared exchanges with this target, if there is one. */
  release(target: WebsocketTarget): void {
    this.#persistent.get(target.key)?.terminate();
  }

  #open(target: WebsocketTarget, queue: MessageQueue | null): UserSocket {
    if (this.closed) throw new Error("the virtual user has ended");
    if (this.#all.size >= SOCKETS_PER_USER_MAX) {
      throw new Error(
        `this virtual user has ${SOCKETS_PER_USER_MAX} WebSockets open: close them with ws.close()`,
      );
    }
    const socket = new UserSocket(target, this, queue);
    this.#all.add(socket);
    return socket;
  }

  gone(socket: UserSocket): void {
    this.#all.delete(socket);
    if (this.#persistent.get(socket.target.key) === socket)
      this.#persistent.delete(socket.target.key);
  }

  /** Connections outlive iterations, as those of HTTP do. */
  reset(): void {}

  close(): void {
    this.closed = true;
    for (const socket of [...this.#all]) socket.terminate();
  }
}

export const websocketSessions: SessionKey<WebsocketUser> = {
  name: "websocket",
  create: (session) => new WebsocketUser(session.settings),
};
