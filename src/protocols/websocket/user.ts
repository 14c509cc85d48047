/** WebSockets of one virtual user: those opened by its functions, and those of prepared exchanges. */

import type { CallSettings, Session, SessionKey, SessionState } from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import type { Handshake } from "./handshake.ts";
import { SOCKETS_PER_USER_MAX } from "./limits.ts";
import { MessageQueue } from "./message-queue.ts";
import { type SocketOwner, UserSocket } from "./socket.ts";

export class WebsocketUser implements SessionState, SocketOwner {
  readonly settings: CallSettings;
  readonly user: number;
  readonly trace: TraceContext | null;
  /** Connection of `ws.send` and its siblings: the one opened last. */
  latest: UserSocket | null = null;
  readonly #all = new Set<UserSocket>();
  /** Connections of prepared exchanges by target; they stay open between iterations. */
  readonly #persistent = new Map<string, UserSocket>();
  /** Connections that close with the iteration they were opened in. */
  readonly #ofIteration = new Set<UserSocket>();
  closed = false;

  constructor({ settings, trace = null, user }: Pick<Session, "settings" | "trace" | "user">) {
    this.trace = trace;
    this.settings = settings;
    this.user = user;
  }

  /** Opens a connection for functions, with a queue for unsolicited messages. */
  open(handshake: Handshake): UserSocket {
    return this.#open(handshake, new MessageQueue());
  }

  /** Opens a connection that closes with its iteration. */
  openForIteration(handshake: Handshake): UserSocket {
    const socket = this.open(handshake);
    this.#ofIteration.add(socket);
    return socket;
  }

  /** Returns the connection shared by all prepared exchanges with this target. */
  persistent(handshake: Handshake): UserSocket {
    let socket = this.#persistent.get(handshake.key);
    if (socket === undefined) {
      socket = this.#open(handshake, null);
      this.#persistent.set(handshake.key, socket);
    }
    return socket;
  }

  /** Closes the connection of prepared exchanges with this target, if there is one. */
  release(handshake: Handshake): void {
    this.#persistent.get(handshake.key)?.terminate();
  }

  #open(handshake: Handshake, queue: MessageQueue | null): UserSocket {
    if (this.closed) throw new Error("the virtual user has ended");
    // A server that does not confirm a close must not block the next connection.
    if (this.#all.size >= SOCKETS_PER_USER_MAX)
      [...this.#all].find(({ leaving }) => leaving)?.terminate();
    if (this.#all.size >= SOCKETS_PER_USER_MAX) {
      throw new Error(
        `this virtual user has ${SOCKETS_PER_USER_MAX} WebSockets open: close them with ws.close()`,
      );
    }
    const socket = new UserSocket(handshake, this, queue);
    this.#all.add(socket);
    return socket;
  }

  connectionClosed(socket: UserSocket): void {
    this.#all.delete(socket);
    this.#ofIteration.delete(socket);
    if (this.#persistent.get(socket.handshake.key) === socket)
      this.#persistent.delete(socket.handshake.key);
  }

  /** Connections outlive iterations, like those of HTTP, unless they were opened for one. */
  reset(): void {
    for (const socket of this.#ofIteration) socket.leave();
    this.#ofIteration.clear();
  }

  close(): void {
    this.closed = true;
    for (const socket of [...this.#all]) socket.terminate();
  }
}

export const websocketSessions: SessionKey<WebsocketUser> = {
  name: "websocket",
  create: (session) => new WebsocketUser(session),
};
