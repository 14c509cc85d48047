/**
 * MongoDB messages: a head, flags, and one BSON document (OP_MSG, section kind 0). Checksums and compression are never
 * negotiated, so a response that uses them is malformed.
 */

import type { Document } from "bson";
import { OptionalPackage } from "../target/driver.ts";
import type { StreamParser } from "../target/stream-buffer.ts";
import { HEAD_BYTES } from "./limits.ts";

export const bson = new OptionalPackage<typeof import("bson")>("bson", "MongoDB");

const OP_MSG = 2013;
const BODY_AT = HEAD_BYTES + 5;
/** Documents have at least a length and an end. */
const MESSAGE_BYTES_MIN = BODY_AT + 5;

/** `number` is returned with the response. */
export function encodeMessage(body: Uint8Array, number: number): Buffer {
  const message = Buffer.allocUnsafe(BODY_AT + body.length);
  message.writeInt32LE(message.length, 0);
  message.writeInt32LE(number, 4);
  message.writeInt32LE(0, 8);
  message.writeInt32LE(OP_MSG, 12);
  message.writeUInt32LE(0, 16);
  message.writeUInt8(0, 20);
  message.set(body, BODY_AT);
  return message;
}

interface MessageReader {
  /** A response to the message of this number. Returns false for an unexpected one. */
  message(document: Document, number: number): boolean;
  /** The parser is not called again before this many bytes are available. */
  wants(bytes: number): void;
}

export class MessageParser implements StreamParser {
  /** Reason why nothing more can be read. */
  problem = "";
  readonly #reader: MessageReader;
  readonly #bytesMax: number;

  constructor(reader: MessageReader, bytesMax: number) {
    this.#reader = reader;
    this.#bytesMax = bytesMax;
  }

  parse(buffer: Buffer, from: number, end: number): number {
    if (end - from < HEAD_BYTES) return from;
    const length = buffer.readInt32LE(from);
    if (length < MESSAGE_BYTES_MIN || buffer.readInt32LE(from + 12) !== OP_MSG)
      return this.#broken("the server does not speak the MongoDB protocol");
    if (length > this.#bytesMax)
      return this.#broken(`an answer is longer than ${this.#bytesMax} bytes (bodyBytesMax)`);
    if (end - from < length) {
      this.#reader.wants(length);
      return from;
    }
    if (buffer.readUInt32LE(from + 16) !== 0 || buffer[from + 20] !== 0)
      return this.#broken("a response has flags that were not negotiated");
    const document = this.#document(buffer.subarray(from + BODY_AT, from + length));
    if (document === null) return this.#broken("a response is not a document");
    if (!this.#reader.message(document, buffer.readInt32LE(from + 8)))
      return this.#broken("an unexpected response");
    return from + length;
  }

  #document(bytes: Buffer): Document | null {
    try {
      // Copied, so that the next read does not overwrite what is kept of it.
      return bson.module.deserialize(Buffer.from(bytes));
    } catch {
      return null;
    }
  }

  #broken(problem: string): -1 {
    this.problem = problem;
    return -1;
  }
}
