/**
 * One connection to an event server, over HTTP/1.1: a request, and the events of its response until the stream ends or
 * enough of them have arrived. A stream that continues is cut off by closing the connection.
 */

import { ChunkedReader } from "../http1/chunked.ts";
import {
  BODY_CHUNKED,
  BODY_LENGTH,
  BODY_NONE,
  BODY_UNTIL_CLOSE,
  earlyProblem,
  findHeadEnd,
  HEAD_BROKEN,
  Head,
  parseHead,
} from "../http1/head.ts";
import { HEAD_BYTES_MAX } from "../http1/limits.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { TRACEPARENT } from "../trace-context.ts";
import { EventReader, type SseEvent } from "./events.ts";

export interface SseCommand {
  /** The whole request. */
  readonly bytes: Buffer;
  /** Offset of an inserted traceparent header; -1 when the request has its own. */
  readonly traceAt: number;
  /** Events after which the call finishes although the stream may continue; 0 waits for its end. */
  readonly take: number;
}

type Call = CarriedCall<SseCommand>;

const EVENT_STREAM = /^content-type:[ \t]*text\/event-stream\b/im;
const STATUS_FAILED = 400;

/** State of reading one response. */
class Reading {
  readonly events: SseEvent[] = [];
  readonly reader = new EventReader((event) => this.events.push(event));
  readonly chunks = new ChunkedReader();
  head: Head | null = null;
  left = 0;
  bytes = 0;
}

export class SseConnection implements Connection<SseCommand> {
  spent = false;
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  #call: Call | null = null;
  #reading = new Reading();
  /** Beginning of an incomplete head. */
  #kept: Buffer = Buffer.alloc(0);
  #now = 0;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: Call, now: number): void {
    const bytes = traced(call);
    this.#call = call;
    this.#reading = new Reading();
    call.wrote(bytes.length, 1, now);
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#call = null;
    this.#socket.destroy();
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#now = now;
    const call = this.#call;
    if (call === null) {
      this.#broken("unexpected bytes");
      return;
    }
    call.read(end, now);
    if (this.#reading.head !== null) this.#body(call, this.#reading.head, buffer, 0, end);
    else this.#headBytes(call, Buffer.concat([this.#kept, buffer.subarray(0, end)]));
  }

  #headBytes(call: Call, bytes: Buffer): void {
    if (findHeadEnd(bytes, 0, 0, bytes.length) < 0) {
      const problem =
        bytes.length > HEAD_BYTES_MAX
          ? `a head is longer than ${HEAD_BYTES_MAX} bytes`
          : earlyProblem(bytes, 0, 0, bytes.length);
      this.#kept = bytes;
      if (problem !== null) this.#broken(problem);
      return;
    }
    this.#kept = Buffer.alloc(0);
    const head = new Head();
    const at = parseHead(head, bytes, 0, bytes.length, false);
    if (at === HEAD_BROKEN) {
      this.#broken(head.problem ?? "the head is malformed");
      return;
    }
    // Interim responses are skipped.
    if (head.status < 200) {
      this.#headBytes(call, bytes.subarray(at));
      return;
    }
    call.status(head.status);
    this.#reading.head = head;
    this.#reading.left = head.bodyLength;
    const isStream = EVENT_STREAM.test(bytes.toString("latin1", 0, at));
    if (!isStream && head.status < STATUS_FAILED && head.status !== NO_CONTENT)
      this.#broken("the response is not text/event-stream");
    else this.#body(call, head, bytes, at, bytes.length);
  }

  #body(call: Call, head: Head, buffer: Buffer, from: number, end: number): void {
    const reading = this.#reading;
    const content = (start: number, stop: number): void => {
      reading.bytes += stop - start;
      if (reading.bytes <= this.#host.settings.bodyBytesMax)
        reading.reader.feed(buffer.subarray(start, stop));
    };
    let over = head.bodyKind === BODY_NONE;
    if (head.bodyKind === BODY_CHUNKED) {
      const outcome = reading.chunks.feed(buffer, from, end, content);
      if (outcome === "broken") {
        this.#broken(reading.chunks.problem ?? "a chunk is malformed");
        return;
      }
      over = outcome === "done";
      if (over && from + reading.chunks.taken < end) this.spent = true;
    } else if (!over) {
      const limit = head.bodyKind === BODY_LENGTH ? Math.min(end, from + reading.left) : end;
      content(from, limit);
      reading.left -= limit - from;
      over = head.bodyKind === BODY_LENGTH && reading.left === 0;
    }
    const { bodyBytesMax } = this.#host.settings;
    if (reading.bytes > bodyBytesMax)
      this.#broken(`an answer is longer than ${bodyBytesMax} bytes (bodyBytesMax)`);
    else if (over) this.#ended(call, head, !head.keepAlive);
    else if (call.command.take > 0 && reading.events.length >= call.command.take)
      this.#ended(call, head, true);
  }

  /** The response is complete, or enough events have arrived. */
  #ended(call: Call, head: Head, spent: boolean): void {
    this.#call = null;
    this.spent ||= spent;
    const { events } = this.#reading;
    const { take } = call.command;
    if (head.status >= STATUS_FAILED) {
      const text = `HTTP ${head.status}`;
      call.failed({ kind: "status", code: `${head.status}`, text }, this.#now);
    } else call.answered(take > 0 ? events.slice(0, take) : events, this.#now);
  }

  streamEnded(failure: ConnectionFailure, now: number): void {
    this.#now = now;
    const { head, reader } = this.#reading;
    const call = this.#call;
    const whole = head?.bodyKind === BODY_UNTIL_CLOSE && failure.orderly === true;
    if (call !== null && head !== null && whole && !reader.begun) {
      this.#ended(call, head, true);
      return;
    }
    this.#call = null;
    const begun = head !== null || this.#kept.length > 0;
    const text = begun ? `${failure.text} in mid-answer` : failure.text;
    this.#host.lost({ ...failure, text }, now);
  }

  #broken(text: string): void {
    this.#call = null;
    this.#host.lost({ kind: "protocol", text }, this.#now);
  }
}

const NO_CONTENT = 204;

/** The request of a call, with its trace header, if any. */
function traced(call: Call): Buffer {
  const { bytes, traceAt } = call.command;
  const traceparent = traceAt < 0 ? "" : (call.traceparent?.() ?? "");
  if (traceparent === "") return bytes;
  const header = Buffer.from(`${TRACEPARENT}: ${traceparent}\r\n`, "latin1");
  return Buffer.concat([bytes.subarray(0, traceAt), header, bytes.subarray(traceAt)]);
}
