/**
 * \n The client side of HTTP/2 (RFC 9113), independent of the transport: settings, streams, flow control, header
 * blocks.
 *
 * The server is not trusted: the memory and work it can cause without progress are bounded, and the first frame that
 * violates the protocol closes the connection with a named error.
 */

import type { Failure } from "../errors.ts";
import { goawayFailure } from "./failure.ts";
import { type FrameHead, type FrameListener, FrameReader } from "./frame-reader.ts";
import { type FrameCarrier, FrameWriter, type RequestHead } from "./frame-writer.ts";
import * as f from "./frames.ts";
import { HpackDecoder, HpackError, LIST_BYTES_MAX } from "./hpack/decoder.ts";
import type { HeaderList } from "./hpack/header-list.ts";
import {
  FRAME_BYTES_MAX,
  HEADER_BLOCK_BYTES_MAX,
  HEADER_FRAMES_MAX,
  IDLE_FRAMES_MAX,
  RECEIVE_WINDOW_BYTES,
} from "./limits.ts";
import { Http2Stream, type StreamListener } from "./stream.ts";

export interface SessionOwner extends FrameCarrier {
  /** The server's stream limit is known, or has changed. */
  settingsCame(): void;
  /** No new streams are accepted; those in flight continue. */
  goingAway(): void;
  /** The session is over. Streams in flight are notified by `fail`. */
  sessionFailed(failure: Failure): void;
}

const SETTING_BYTES = 6;
const PRIORITY_BYTES = 5;
const INFORMATIONAL_MAX = 16;
const STREAM_WINDOW_LOW = RECEIVE_WINDOW_BYTES / 2;

export class Http2Session implements FrameListener {
  /** Concurrent streams allowed by the server. */
  streamsMax = Number.POSITIVE_INFINITY;
  readonly #owner: SessionOwner;
  readonly #reader = new FrameReader(this);
  readonly #decoder = new HpackDecoder();
  readonly #writer: FrameWriter;
  readonly #streams = new Map<number, Http2Stream>();
  #nextId = 1;
  #settled = false;
  #goneAway = false;
  #over = false;
  #unacknowledged = 0;
  /** See IDLE_FRAMES_MAX. */
  #idleFrames = 0;
  /** An incomplete header block: its stream, and the part received so far. */
  #blockStream = 0;
  #blockFlags = 0;
  #blockFrames = 0;
  #block: Buffer[] = [];
  #blockBytes = 0;

  constructor(owner: SessionOwner) {
    this.#owner = owner;
    this.#writer = new FrameWriter(owner);
    this.#writer.send(f.PREFACE);
    this.#writer.send(
      f.settingsFrame([
        [f.ENABLE_PUSH, 0],
        [f.INITIAL_WINDOW_SIZE, RECEIVE_WINDOW_BYTES],
        [f.MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX],
      ]),
    );
    this.#writer.send(
      f.numberFrame(f.WINDOW_UPDATE, 0, RECEIVE_WINDOW_BYTES - f.FIRST_WINDOW_BYTES),
    );
  }

  /** Accepts new streams. */
  get usable(): boolean {
    return !this.#over && !this.#goneAway && this.#nextId <= f.STREAM_ID_MAX;
  }

  /** Sends a request with its `body`: null for none, "later" when pieces follow by `sendPiece`. */
  request(
    head: RequestHead,
    body: Uint8Array | "later" | null,
    listener: StreamListener,
  ): Http2Stream {
    const stream = new Http2Stream(
      this.#nextId,
      listener,
      head.isHead,
      this.#writer.firstStreamWindow,
    );
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    const empty = body === null || body.length === 0;
    stream.sent = empty;
    this.#writer.sendHead(stream, head);
    if (empty) return stream;
    if (body !== "later") {
      stream.add(body);
      stream.complete = true;
      this.#writer.sendContent(stream);
    }
    return stream;
  }

  /** Sends one piece of a body. Returns false when it has to wait for `onDrained`. */
  sendPiece(stream: Http2Stream, piece: Uint8Array): boolean {
    if (!this.#streams.has(stream.id)) return true;
    stream.add(piece);
    this.#writer.sendContent(stream);
    return !stream.hasContent;
  }

  /** Ends the body. */
  endContent(stream: Http2Stream): void {
    if (!this.#streams.has(stream.id)) return;
    stream.complete = true;
    this.#writer.sendContent(stream);
  }

  /** Detaches the listener, and resets the stream unless the server has finished it. */
  letGo(stream: Http2Stream, code: number): void {
    stream.listener = null;
    if (!this.#drop(stream)) return;
    this.#writer.send(f.numberFrame(f.RST_STREAM, stream.id, code));
  }

  /** Processes bytes read by the socket. */
  receive(bytes: Buffer, from: number, end: number): void {
    if (this.#over) return;
    this.#writer.hold();
    this.#reader.read(bytes, from, end);
    this.#writer.release();
  }

  /** The socket accepts more. */
  resume(): void {
    this.#writer.resume();
  }

  /** Ends the session for a reason of the transport, and fails streams in flight. */
  fail(failure: Failure): void {
    this.#over = true;
    this.#writer.close();
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) {
      const { listener } = stream;
      stream.listener = null;
      listener?.streamFailed(failure);
    }
  }

  frameBegins(head: FrameHead): boolean {
    const { type, flags, stream, length } = head;
    if (!this.#settled && (type !== f.SETTINGS || (flags & f.ACK) !== 0))
      return this.#broken(f.PROTOCOL_ERROR, "it did not send its settings first");
    if (this.#blockStream !== 0 && (type !== f.CONTINUATION || stream !== this.#blockStream))
      return this.#broken(f.PROTOCOL_ERROR, "a frame in the middle of headers");
    if (type === f.DATA) return this.#contentBegins(head);
    if (type !== f.HEADERS && type !== f.CONTINUATION) return this.#idle();
    return length >= 0;
  }

  #contentBegins({ stream, length }: FrameHead): boolean {
    if (!this.#isOurs(stream))
      return this.#broken(f.PROTOCOL_ERROR, "content on an unknown stream");
    // The whole frame counts, including its padding, whether or not it is used.
    this.#unacknowledged += length;
    if (this.#unacknowledged > RECEIVE_WINDOW_BYTES)
      return this.#broken(f.FLOW_CONTROL_ERROR, "more content than its window allows");
    return length > 0 ? true : this.#idle();
  }

  content({ stream: id }: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    const stream = this.#streams.get(id);
    if (stream === undefined) return true;
    if (stream.headers === null)
      return this.#broken(f.PROTOCOL_ERROR, "content before the headers of an answer");
    this.#idleFrames = 0;
    stream.received += end - from;
    stream.unacknowledged += end - from;
    if (stream.unacknowledged > RECEIVE_WINDOW_BYTES)
      return this.#broken(f.FLOW_CONTROL_ERROR, "more content than its window allows");
    stream.listener?.contentCame(bytes, from, end);
    return !this.#over;
  }

  frameCame(head: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    switch (head.type) {
      case f.DATA:
        return this.#onContentEnd(head, bytes, from, end);
      case f.HEADERS:
        return this.#onHeaders(head, bytes, from, end);
      case f.CONTINUATION:
        return this.#onContinuation(head, bytes, from, end);
      case f.RST_STREAM:
        return this.#onReset(head, bytes, from);
      case f.SETTINGS:
        return this.#onSettings(head, bytes, from, end);
      case f.PING:
        return this.#onPing(head, bytes, from, end);
      case f.GOAWAY:
        return this.#onGoaway(head, bytes, from);
      case f.WINDOW_UPDATE:
        return this.#onWindowUpdate(head, bytes, from);
      case f.PUSH_PROMISE:
        return this.#broken(f.PROTOCOL_ERROR, "it pushes although push is disabled");
      default:
        // PRIORITY and unknown frame types are ignored (RFC 9113 §5.5).
        return true;
    }
  }

  frameTooLong(length: number): void {
    this.#broken(f.FRAME_SIZE_ERROR, `a frame of ${length} bytes`);
  }

  #onContentEnd(head: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    if ((head.flags & f.PADDED) !== 0) {
      const padding = bytes[from] ?? 0;
      if (padding >= end - from) return this.#broken(f.PROTOCOL_ERROR, "more padding than frame");
      if (!this.content(head, bytes, from + 1, end - padding)) return false;
    }
    if (this.#unacknowledged >= STREAM_WINDOW_LOW) {
      this.#writer.send(f.numberFrame(f.WINDOW_UPDATE, 0, this.#unacknowledged));
      this.#unacknowledged = 0;
    }
    const stream = this.#streams.get(head.stream);
    if (stream === undefined) return true;
    if ((head.flags & f.END_STREAM) !== 0) this.#ended(stream);
    else if (stream.unacknowledged >= STREAM_WINDOW_LOW) {
      this.#writer.send(f.numberFrame(f.WINDOW_UPDATE, stream.id, stream.unacknowledged));
      stream.unacknowledged = 0;
    }
    return !this.#over;
  }

  #onHeaders(head: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    if (!this.#isOurs(head.stream))
      return this.#broken(f.PROTOCOL_ERROR, "headers on an unknown stream");
    let first = from;
    let last = end;
    if ((head.flags & f.PADDED) !== 0) last -= bytes[first++] ?? 0;
    if ((head.flags & f.WITH_PRIORITY) !== 0) first += PRIORITY_BYTES;
    if (first > last) return this.#broken(f.PROTOCOL_ERROR, "more padding than frame");
    if ((head.flags & f.END_HEADERS) !== 0)
      return this.#onBlock(head.stream, head.flags, bytes, first, last);
    this.#blockStream = head.stream;
    this.#blockFlags = head.flags;
    this.#blockFrames = 0;
    return this.#collectBlock(bytes, first, last);
  }

  #onContinuation(head: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    if (this.#blockStream === 0)
      return this.#broken(f.PROTOCOL_ERROR, "a continuation without headers");
    if (!this.#collectBlock(bytes, from, end)) return false;
    if ((head.flags & f.END_HEADERS) === 0) return true;
    const block = Buffer.concat(this.#block);
    this.#block = [];
    this.#blockBytes = 0;
    this.#blockStream = 0;
    return this.#onBlock(head.stream, this.#blockFlags, block, 0, block.length);
  }

  #collectBlock(bytes: Buffer, from: number, end: number): boolean {
    this.#blockBytes += end - from;
    if (this.#blockBytes > HEADER_BLOCK_BYTES_MAX || ++this.#blockFrames > HEADER_FRAMES_MAX)
      return this.#broken(f.ENHANCE_YOUR_CALM, "endless headers");
    this.#block.push(Buffer.from(bytes.subarray(from, end)));
    return true;
  }

  #onBlock(id: number, flags: number, bytes: Buffer, from: number, end: number): boolean {
    let headers: HeaderList;
    try {
      headers = this.#decoder.decode(bytes, from, end);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      return this.#broken(f.COMPRESSION_ERROR, error.message);
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) return true;
    const isEnd = (flags & f.END_STREAM) !== 0;
    const problem = headersProblem(stream, headers, isEnd);
    if (problem !== null) this.#refuse(stream, problem);
    else if (stream.headers !== null) {
      stream.listener?.trailersCame?.(headers);
      this.#ended(stream);
    } else if (headers.status < 200) {
      stream.informational++;
      return this.#idle();
    } else {
      this.#idleFrames = 0;
      stream.headers = headers;
      stream.listener?.headersCame(headers);
      if (isEnd && !this.#over) this.#ended(stream);
    }
    return !this.#over;
  }

  #onReset({ stream: id, length }: FrameHead, bytes: Buffer, from: number): boolean {
    if (length !== 4) return this.#broken(f.FRAME_SIZE_ERROR, "a reset of a wrong length");
    if (!this.#isOurs(id)) return this.#broken(f.PROTOCOL_ERROR, "a reset of an unknown stream");
    const stream = this.#streams.get(id);
    if (stream === undefined) return true;
    const code = bytes.readUInt32BE(from);
    this.#idleFrames = 0;
    this.#drop(stream);
    stream.listener?.streamReset(code, this.#goneAway && code === f.REFUSED_STREAM);
    return !this.#over;
  }

  #onSettings({ flags, stream, length }: FrameHead, bytes: Buffer, from: number, end: number) {
    if (stream !== 0) return this.#broken(f.PROTOCOL_ERROR, "settings on a stream");
    if ((flags & f.ACK) !== 0) return true;
    if (length % SETTING_BYTES !== 0) return this.#broken(f.FRAME_SIZE_ERROR, "half a setting");
    for (let at = from; at < end; at += SETTING_BYTES) {
      if (!this.#setting(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2))) return false;
    }
    this.#writer.send(f.frame(f.SETTINGS, f.ACK, 0, 0));
    this.#settled = true;
    this.#owner.settingsCame();
    return !this.#over;
  }

  #setting(id: number, value: number): boolean {
    switch (id) {
      case f.HEADER_TABLE_SIZE:
        this.#writer.limitTable(value);
        return true;
      case f.MAX_CONCURRENT_STREAMS:
        this.streamsMax = value;
        return true;
      case f.INITIAL_WINDOW_SIZE:
        return this.#firstWindow(value);
      case f.MAX_FRAME_SIZE:
        if (value < FRAME_BYTES_MAX || value >= 2 ** 24)
          return this.#broken(f.PROTOCOL_ERROR, "an invalid frame size");
        return true;
      default:
        return true;
    }
  }

  #firstWindow(value: number): boolean {
    if (value > f.WINDOW_BYTES_MAX)
      return this.#broken(f.FLOW_CONTROL_ERROR, "a window that is too large");
    const more = value - this.#writer.firstStreamWindow;
    this.#writer.firstStreamWindow = value;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += more;
      if (stream.sendWindow > f.WINDOW_BYTES_MAX)
        return this.#broken(f.FLOW_CONTROL_ERROR, "a window that is too large");
    }
    if (more > 0) this.#writer.unblock();
    return true;
  }

  #onPing({ flags, stream, length }: FrameHead, bytes: Buffer, from: number, end: number): boolean {
    if (stream !== 0 || length !== 8) return this.#broken(f.FRAME_SIZE_ERROR, "a malformed ping");
    if ((flags & f.ACK) !== 0) return true;
    const pong = f.frame(f.PING, f.ACK, 0, length);
    bytes.copy(pong, f.FRAME_HEAD_BYTES, from, end);
    this.#writer.send(pong);
    return true;
  }

  /** Streams up to the last one that the server names continue; it has not processed the others. */
  #onGoaway({ stream: id, length }: FrameHead, bytes: Buffer, from: number): boolean {
    if (id !== 0 || length < 8) return this.#broken(f.FRAME_SIZE_ERROR, "a GOAWAY too short");
    const last = bytes.readUInt32BE(from) & 0x7fffffff;
    const code = bytes.readUInt32BE(from + 4);
    this.#goneAway = true;
    this.#owner.goingAway();
    for (const stream of [...this.#streams.values()]) {
      if (stream.id <= last || !this.#drop(stream)) continue;
      stream.listener?.streamReset(f.REFUSED_STREAM, true);
    }
    if (code !== f.NO_ERROR && !this.#over) this.#owner.sessionFailed(goawayFailure(code));
    return !this.#over;
  }

  #onWindowUpdate({ stream: id, length }: FrameHead, bytes: Buffer, from: number): boolean {
    if (length !== 4) return this.#broken(f.FRAME_SIZE_ERROR, "a window update of a wrong length");
    const more = bytes.readUInt32BE(from) & 0x7fffffff;
    if (id === 0) {
      this.#writer.window += more;
      if (more === 0 || this.#writer.window > f.WINDOW_BYTES_MAX)
        return this.#broken(
          f.FLOW_CONTROL_ERROR,
          "a window that is too large, or grows by nothing",
        );
      this.#writer.unblock();
      return true;
    }
    if (!this.#isOurs(id))
      return this.#broken(f.PROTOCOL_ERROR, "a window update on an unknown stream");
    const stream = this.#streams.get(id);
    if (stream === undefined) return true;
    stream.sendWindow += more;
    if (more === 0 || stream.sendWindow > f.WINDOW_BYTES_MAX)
      this.#refuse(stream, "a window that is too large, or grows by nothing");
    else this.#writer.retry(stream);
    return !this.#over;
  }

  #ended(stream: Http2Stream): void {
    const problem = stream.lengthProblem;
    if (problem !== null) {
      this.#refuse(stream, problem);
      return;
    }
    this.#drop(stream);
    // The server answered before the whole body was sent; cancel the rest.
    if (!stream.sent) this.#writer.send(f.numberFrame(f.RST_STREAM, stream.id, f.CANCEL));
    stream.listener?.streamEnded();
  }

  /** Fails one stream with a malformed response; the connection continues. */
  #refuse(stream: Http2Stream, why: string): void {
    if (!this.#drop(stream)) return;
    this.#writer.send(f.numberFrame(f.RST_STREAM, stream.id, f.PROTOCOL_ERROR));
    stream.listener?.streamFailed(notHttp2(why));
  }

  #drop(stream: Http2Stream): boolean {
    this.#writer.forget(stream);
    return this.#streams.delete(stream.id);
  }

  /** A stream that this client opened, possibly finished since. */
  #isOurs(id: number): boolean {
    return id % 2 === 1 && id < this.#nextId;
  }

  #idle(): boolean {
    if (this.#writer.progressed) this.#idleFrames = 0;
    this.#writer.progressed = false;
    if (++this.#idleFrames <= IDLE_FRAMES_MAX) return true;
    return this.#broken(f.ENHANCE_YOUR_CALM, `${IDLE_FRAMES_MAX} frames without progress`);
  }

  /** Closes the connection: the server violated a rule that affects all streams. */
  #broken(code: number, why: string): false {
    if (this.#over) return false;
    this.#writer.flush();
    this.#owner.write(f.goawayFrame(code));
    this.#owner.sessionFailed(notHttp2(why));
    return false;
  }
}

function notHttp2(why: string): Failure {
  return { kind: "protocol", text: `the server does not keep to HTTP/2: ${why}` };
}

function headersProblem(stream: Http2Stream, headers: HeaderList, isEnd: boolean): string | null {
  if (headers.problem !== null) return headers.problem;
  if (stream.headers !== null) {
    if (headers.status !== 0) return "a status in trailers";
    return isEnd ? null : "headers in the middle of an answer";
  }
  if (headers.status === 0) return "an answer without a valid status";
  if (headers.status >= 200) return null;
  if (isEnd) return "a response that is only informational";
  return stream.informational < INFORMATIONAL_MAX ? null : "endless informational responses";
}
