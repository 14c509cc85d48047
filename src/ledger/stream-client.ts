/**
 * Client side of a node's stream (api-stream.ts): many requests share one connection, and all requests of one turn
 * share one frame. When the connection is lost, requests without an answer fail as unknown: they may have been
 * executed, and the caller retries with the same key or event id.
 */

import { request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import { ByteWriter } from "../core/base/bytes.ts";
import { decodeBatch, encodeBatches } from "../core/ledger/node/codec.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage } from "../core/ledger/node/messages.ts";
import type { WatchItem, WatchRequest } from "../core/ledger/node/watch.ts";
import { parseAddress } from "../wire/address.ts";
import { FrameReader, frame } from "../wire/frame.ts";
import { STREAM_FRAME_BYTES_MAX, STREAM_PROTOCOL } from "./api-stream.ts";

const REQUEST_BYTES = 262_144;

/** Null: the connection was lost before the answer came. */
type OnStreamAnswer = (answer: LedgerAnswer | null) => void;

export class LedgerStream {
  readonly #socket: Socket;
  readonly #frames = new FrameReader(STREAM_FRAME_BYTES_MAX);
  readonly #writer = new ByteWriter(REQUEST_BYTES * 2);
  readonly #waiting = new Map<number, OnStreamAnswer>();
  readonly #watching = new Map<number, (item: WatchItem) => void>();
  readonly #onClose: () => void;
  #unsent: NodeMessage[] = [];
  #ids = 0;
  #closed = false;

  private constructor(socket: Socket, head: Uint8Array, onClose: () => void) {
    this.#socket = socket;
    this.#onClose = onClose;
    socket.setNoDelay(true);
    socket.on("data", (bytes) => this.#onData(bytes));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#end());
    if (head.length > 0) this.#onData(head);
  }

  /** Rejects if there is no answer, or the node is not ready. */
  static connect(
    api: string,
    options: {
      readonly token?: string;
      readonly timeoutMs?: number;
      readonly onClose?: () => void;
    } = {},
  ): Promise<LedgerStream> {
    const at = parseAddress(api);
    if (!at.ok) return Promise.reject(new Error(at.problem));
    const token = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        host: at.host,
        port: at.port,
        path: "/v1/stream",
        timeout: options.timeoutMs ?? 5_000,
        headers: { connection: "Upgrade", upgrade: STREAM_PROTOCOL, ...token },
      });
      request.once("upgrade", (_response, socket, head) => {
        (socket as Socket).setTimeout(0);
        resolve(new LedgerStream(socket as Socket, head, options.onClose ?? (() => {})));
      });
      request.once("response", (response) => {
        request.destroy();
        reject(new Error(`the node at ${api} refused with status ${response.statusCode}`));
      });
      request.once("timeout", () => request.destroy(new Error(`no answer from ${api}`)));
      request.once("error", reject);
      request.end();
    });
  }

  get inFlight(): number {
    return this.#waiting.size;
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(request: LedgerRequest, onAnswer: OnStreamAnswer): void {
    if (this.#closed) {
      queueMicrotask(() => onAnswer(null));
      return;
    }
    const id = ++this.#ids;
    this.#waiting.set(id, onAnswer);
    this.#post({ kind: "request", id, request });
  }

  /** Watches committed events from now on, in order; the returned function stops it. */
  watch(request: WatchRequest, onItem: (item: WatchItem) => void): () => void {
    const id = ++this.#ids;
    this.#watching.set(id, onItem);
    this.#post({ kind: "watch", id, request });
    return () => {
      if (this.#watching.delete(id)) this.#post({ kind: "watch", id, request: null });
    };
  }

  /** Stops reading while the consumer is not ready; the node keeps the watch's position. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  #post(message: NodeMessage): void {
    if (this.#closed) return;
    if (this.#unsent.length === 0) setImmediate(() => this.#flush());
    this.#unsent.push(message);
  }

  ask(request: LedgerRequest): Promise<LedgerAnswer | null> {
    return new Promise((resolve) => this.send(request, resolve));
  }

  close(): void {
    this.#socket.destroy();
  }

  #flush(): void {
    const batch = this.#unsent;
    this.#unsent = [];
    if (this.#closed) return;
    for (const bytes of encodeBatches(this.#writer, batch, REQUEST_BYTES)) {
      this.#socket.write(frame(bytes, STREAM_FRAME_BYTES_MAX));
    }
  }

  #onData(bytes: Uint8Array): void {
    for (const event of this.#frames.push(bytes)) {
      const batch = event.kind === "frame" ? decodeBatch(event.payload) : null;
      if (batch === null || !batch.ok) {
        this.#socket.destroy();
        return;
      }
      for (const message of batch.messages) {
        if (message.kind === "watched") this.#watching.get(message.id)?.(message.item);
        if (message.kind !== "answer") continue;
        const onAnswer = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        onAnswer?.(message.answer);
      }
    }
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const onAnswer of lost) onAnswer(null);
    this.#onClose();
  }
}
