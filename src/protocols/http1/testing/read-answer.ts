/**
 * The parsers of this folder combined over pieces of any size, without a socket, for tests and the fuzzer to compare
 * with llhttp. Follows the order of a connection: interim responses are skipped, the body is read by its kind, and
 * bytes after the end are left unread.
 */

import { ChunkedReader } from "../chunked.ts";
import {
  BODY_CHUNKED,
  BODY_LENGTH,
  BODY_NONE,
  earlyProblem,
  findHeadEnd,
  HEAD_INCOMPLETE,
  Head,
  parseHead,
} from "../head.ts";
import { HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX } from "../limits.ts";

export interface AnswerRead {
  readonly end: "complete" | "broken" | "incomplete";
  readonly status: number;
  readonly body: string;
  readonly keepAlive: boolean;
  /** Bytes up to the end of the response; 0 unless complete. */
  readonly taken: number;
  readonly problem: string | null;
}

/** Reads one response; the connection closes after the last piece. */
export function readAnswer(pieces: readonly Buffer[], toHead: boolean): AnswerRead {
  const reader = new AnswerReader(toHead);
  for (const piece of pieces) {
    const done = reader.feed(piece);
    if (done !== null) return done;
  }
  return reader.close();
}

class AnswerReader {
  readonly #toHead: boolean;
  readonly #head = new Head();
  readonly #chunked = new ChunkedReader();
  /** Bytes of an unfinished head. */
  #pending: Buffer = Buffer.alloc(0);
  #inBody = false;
  #interim = 0;
  #left = 0;
  #body: Buffer[] = [];
  #taken = 0;

  constructor(toHead: boolean) {
    this.#toHead = toHead;
  }

  feed(piece: Buffer): AnswerRead | null {
    if (this.#inBody) return this.#feedBody(piece, 0);
    const before = this.#pending.length;
    const buffer = Buffer.concat([this.#pending, piece]);
    // Like a connection, parse a split head again only when it is complete.
    if (before > 0 && findHeadEnd(buffer, 0, Math.max(0, before - 3), buffer.length) < 0)
      return this.#keep(buffer, before);
    let start = 0;
    for (;;) {
      const end = parseHead(this.#head, buffer, start, buffer.length, this.#toHead);
      if (end === HEAD_INCOMPLETE) return this.#keep(buffer.subarray(start), 0);
      if (end < 0) return this.#result("broken", this.#head.problem);
      this.#taken += end - start;
      if (this.#head.status >= 200) {
        this.#inBody = true;
        this.#left = this.#head.bodyLength;
        return this.#feedBody(buffer, end);
      }
      if (++this.#interim > INTERIM_ANSWERS_MAX)
        return this.#result("broken", "too many interim answers");
      start = end;
    }
  }

  #keep(bytes: Buffer, scannedTo: number): AnswerRead | null {
    const problem =
      bytes.length > HEAD_BYTES_MAX
        ? "the head is too long"
        : earlyProblem(bytes, 0, scannedTo, bytes.length);
    if (problem !== null) return this.#result("broken", problem);
    this.#pending = bytes;
    return null;
  }

  close(): AnswerRead {
    const { length } = this.#pending;
    const broken =
      !this.#inBody && parseHead(this.#head, this.#pending, 0, length, this.#toHead) < 0;
    if (broken) return this.#result("broken", this.#head.problem);
    const untilClose = this.#inBody && this.#head.bodyKind > BODY_CHUNKED;
    return this.#result(untilClose ? "complete" : "incomplete", null);
  }

  #feedBody(buffer: Buffer, from: number): AnswerRead | null {
    if (this.#head.bodyKind === BODY_NONE) return this.#result("complete", null);
    if (this.#head.bodyKind === BODY_CHUNKED) {
      const outcome = this.#chunked.feed(buffer, from, buffer.length, (start, end) => {
        this.#body.push(buffer.subarray(start, end));
      });
      if (outcome === "broken") return this.#result("broken", this.#chunked.problem);
      this.#taken += this.#chunked.taken;
      return outcome === "done" ? this.#result("complete", null) : null;
    }
    const size =
      this.#head.bodyKind === BODY_LENGTH
        ? Math.min(this.#left, buffer.length - from)
        : buffer.length - from;
    this.#body.push(buffer.subarray(from, from + size));
    this.#taken += size;
    this.#left -= size;
    return this.#head.bodyKind === BODY_LENGTH && this.#left === 0
      ? this.#result("complete", null)
      : null;
  }

  #result(end: AnswerRead["end"], problem: string | null): AnswerRead {
    const complete = end === "complete";
    return {
      end,
      status: complete ? this.#head.status : 0,
      body: complete ? Buffer.concat(this.#body).toString("latin1") : "",
      keepAlive: complete && this.#head.keepAlive,
      taken: complete ? this.#taken : 0,
      problem,
    };
  }
}
