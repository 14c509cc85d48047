/**
 * Writes to one socket. While responses are being read and processed, writes wait for their phase of the turn
 * (`turn.ts`) and are combined into one.
 */

import type net from "node:net";
import { type Deferred, turn } from "./turn.ts";

type Written = (error?: Error | null) => void;

export class TurnWrites implements Deferred {
  readonly #socket: net.Socket;
  /** Waits for its phase of the turn; further writes are corked in the socket. */
  #unwritten: Uint8Array | null = null;
  #corked = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  /** Bytes not yet handed to the socket. */
  get pendingBytes(): number {
    return this.#unwritten?.length ?? 0;
  }

  /** `written` is called when the bytes were handed to the network, or with the error. */
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

  /** Call before writing to the socket directly. */
  flush(): void {
    const bytes = this.#unwritten;
    this.#unwritten = null;
    if (bytes !== null && !this.#socket.destroyed) this.#socket.write(bytes);
    if (this.#corked) this.#socket.uncork();
    this.#corked = false;
  }
}
