/**
 * The watches of one connection. The client's own pace is the bound: a few items are sent at a time, and the next few
 * only once the connection has accepted them, so that a slow reader is a position in the log and not a queue here.
 */

import type { Socket } from "node:net";
import type { NodeMessage } from "../core/ledger/node/messages.ts";
import type { WatchRequest } from "../core/ledger/node/watch.ts";
import { redactItem } from "./redaction.ts";
import type { LedgerService, Watching } from "./service.ts";

/** Items let through at a time; one may bring a description of a megabyte. */
const ROOM = 16;
/** With more than this unsent, no further items are let through. */
const UNSENT_BYTES_MAX = 1_048_576;
const WATCHES_MAX = 64;

export class StreamWatches {
  readonly #host: LedgerService;
  readonly #socket: Socket;
  readonly #send: (message: NodeMessage) => void;
  readonly #watches = new Map<number, Watching>();
  /** Credit granted to each watch once the connection has accepted what was sent. */
  readonly #owed = new Map<number, number>();

  constructor(host: LedgerService, socket: Socket, send: (message: NodeMessage) => void) {
    this.#host = host;
    this.#socket = socket;
    this.#send = send;
    socket.on("drain", () => this.#makeRoom());
    socket.once("close", () => {
      for (const id of [...this.#watches.keys()]) this.#end(id);
    });
  }

  /** False for what no client of ours sends: a number in use, or too many. */
  take(id: number, request: WatchRequest | null): boolean {
    if (request === null) {
      this.#end(id);
      return true;
    }
    if (this.#watches.has(id) || this.#watches.size >= WATCHES_MAX) return false;
    const watching = this.#host.watch(request, ROOM, (items) => {
      if (this.#socket.destroyed) return;
      for (const item of items) {
        this.#send({ kind: "watched", id, item: redactItem(item, this.#host.redactSpec) });
      }
      this.#owed.set(id, (this.#owed.get(id) ?? 0) + items.length);
      if (this.#socket.writableLength < UNSENT_BYTES_MAX) this.#makeRoom();
    });
    this.#watches.set(id, watching);
    return true;
  }

  #makeRoom(): void {
    const owed = [...this.#owed];
    this.#owed.clear();
    for (const [id, count] of owed) this.#watches.get(id)?.makeRoom(count);
  }

  #end(id: number): void {
    this.#watches.get(id)?.end();
    this.#watches.delete(id);
    this.#owed.delete(id);
  }
}
