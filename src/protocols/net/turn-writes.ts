/**
 * What is written on one socket: while answers are being read and dealt with, it waits for its part of
 * the turn (`turn.ts`), and what comes together goes out as one.
 */

import type net from "node:net";
import { type Deferred, turn } from "./turn.ts";

type Written = (error?: Error | null) => void;

export class TurnWrites implements Deferred {
  readonly #socket: net.Socket;
  /** Waits for its part of the turn; where there is more than this, the socket is corked. */
  #unwritten: Uint8Array | null = null;
  #corked = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  /** What the socket has not been given yet. */
  get heldBytes(): number {
    return this.#unwritten?.length ?? 0;
  }

  /** `written` hears that the bytes were handed to the network, or why not. */
  write(bytes: Uint8Array, written?: Written): void {
    if (turn.holdsWrites && this.#unwritten === null && !this.#corked && written === undefined) {
      this.#unwritten = bytes;
      turn.writeLater(this);
      return;
    }
    if (turn.holdsWrites && !this.#corked) this.#cork();
    if (written === undefined) this.#socket.write(bytes);
    else this.#socket.write(bytes, written);
  }

  #cork(): void {
    this.#corked = true;
    this.#socket.cork();
    if (this.#unwritten === null) turn.writeLater(this);
    else this.#socket.write(this.#unwritten);
    this.#unwritten = null;
  }

  resume(): void {
    this.flush();
  }

  /** Before somebody else writes on the socket. */
  flush(): void {
    const bytes = this.#unwritten;
    this.#unwritten = null;
    if (bytes !== null && !this.#socket.destroyed) this.#socket.write(bytes);
    if (this.#corked) this.#socket.uncork();
    this.#corked = false;
  }
}
