/**
 * Interface for programs with many requests: after an HTTP upgrade the connection carries frames, each a batch of
 * requests in the nodes' own encoding, and the answers come back in batches as they are known.
 *
 *     frame = length u32 · request*        answers = length u32 · answer*        paired by the client's ids
 *
 * Requests in flight are bounded per connection: beyond it we stop reading, and TCP slows the client down. Watches are
 * served on the same connection (`stream-watches.ts`).
 */

import type { Socket } from "node:net";
import { ByteWriter } from "../core/base/bytes.ts";
import { decodeBatch, encodeBatches } from "../core/ledger/node/codec.ts";
import type { LedgerAnswer, NodeMessage } from "../core/ledger/node/messages.ts";
import type { AuditRequester } from "../host/ports/audit.ts";
import { FrameReader, frame } from "../wire/frame.ts";
import { streamEntry } from "./audit-entries.ts";
import { redactAnswer } from "./redaction.ts";
import type { LedgerService } from "./service.ts";
import { StreamWatches } from "./stream-watches.ts";

export const STREAM_PROTOCOL = "hyperscale-ledger-1";
/** A submission may bring a description of a megabyte. */
export const STREAM_FRAME_BYTES_MAX = 4 * 1_048_576;
const ANSWER_BYTES = 262_144;
const IN_FLIGHT_MAX = 16_384;
/** A client that does not take its answers is cut off. */
const BACKLOG_BYTES_MAX = 64 * 1_048_576;
/** Silence inside a frame. Between frames a client may be silent for as long as it likes. */
const FRAME_STALL_MS_MAX = 10_000;

const writer = new ByteWriter(ANSWER_BYTES * 2);

/** Whether the interface accepts writes of jobs: nodes of `hyperscale ledger` have no other entry point. */
export function acceptsWrites({ config }: LedgerService): boolean {
  return config.service === "ledger";
}

export function serveStream(socket: Socket, host: LedgerService, requester: AuditRequester): void {
  const frames = new FrameReader(STREAM_FRAME_BYTES_MAX);
  let answers: NodeMessage[] = [];
  const written = { submits: 0, events: 0 };
  let inFlight = 0;
  let midFrame = false;

  const flush = (): void => {
    const batch = answers;
    answers = [];
    if (socket.destroyed) return;
    for (const bytes of encodeBatches(writer, batch, ANSWER_BYTES)) {
      socket.write(frame(bytes, STREAM_FRAME_BYTES_MAX));
    }
    if (socket.writableLength > BACKLOG_BYTES_MAX) socket.destroy();
    if (inFlight < IN_FLIGHT_MAX && socket.isPaused()) socket.resume();
  };
  const answer = (id: number, text: LedgerAnswer): void => {
    inFlight--;
    // All answers of one turn leave together.
    if (answers.length === 0) queueMicrotask(flush);
    answers.push({ kind: "answer", id, answer: redactAnswer(text, host.redactSpec) });
  };
  const watches = new StreamWatches(host, socket, (message) => {
    for (const bytes of encodeBatches(writer, [message], ANSWER_BYTES)) {
      socket.write(frame(bytes, STREAM_FRAME_BYTES_MAX));
    }
  });
  const take = (message: NodeMessage): boolean => {
    if (message.kind === "watch") return watches.take(message.id, message.request);
    if (message.kind !== "request" || message.request.kind === "found") return false;
    if (message.request.kind !== "read" && !acceptsWrites(host)) return false;
    inFlight++;
    const { id, request } = message;
    if (request.kind === "submit") written.submits++;
    if (request.kind === "append") written.events++;
    host.request(request, requester, (text) => answer(id, text));
    return true;
  };

  socket.on("data", (chunk: Uint8Array) => {
    for (const event of frames.push(chunk)) {
      const batch = event.kind === "frame" ? decodeBatch(event.payload) : null;
      if (batch === null || !batch.ok || !batch.messages.every(take)) {
        socket.destroy();
        return;
      }
    }
    if (frames.midFrame !== midFrame) {
      midFrame = frames.midFrame;
      socket.setTimeout(midFrame ? FRAME_STALL_MS_MAX : 0);
    }
    if (inFlight >= IN_FLIGHT_MAX) socket.pause();
  });
  socket.on("timeout", () => {
    // While it is paused the silence is ours.
    if (!socket.isPaused()) socket.destroy();
  });
  socket.on("error", () => socket.destroy());
  socket.once("close", () => {
    const entry = streamEntry(host.config.name, written, requester);
    if (entry !== null) host.note(entry);
  });
}
