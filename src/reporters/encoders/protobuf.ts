/** The few kinds of protobuf fields that remote write and Bigtable need. (protobuf.dev/programming-guides/encoding) */

import { ByteWriter } from "../../core/base/bytes.ts";

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** Most messages are nested and short. */
const CAPACITY = 128;

/** One message; fields are written in the order they are added. */
export class Protobuf {
  readonly #writer: ByteWriter;

  constructor(capacity = CAPACITY) {
    this.#writer = new ByteWriter(capacity);
  }

  /** Encodes a non-negative integer up to 2^53. */
  varint(field: number, value: number): this {
    this.#writer.varint(field * 8 + VARINT);
    this.#writer.varint(value);
    return this;
  }

  /** Encodes a signed integer, small ones in few bytes. */
  zigzag(field: number, value: number): this {
    this.#writer.varint(field * 8 + VARINT);
    this.#writer.signed(value);
    return this;
  }

  double(field: number, value: number): this {
    this.#writer.varint(field * 8 + FIXED64);
    this.#writer.float64(value);
    return this;
  }

  text(field: number, value: string): this {
    this.#writer.varint(field * 8 + BYTES);
    this.#writer.text(value);
    return this;
  }

  message(field: number, value: Protobuf): this {
    return this.bytes(field, value.#writer.take());
  }

  /** Writes a nested message in place: `write` gets this one and adds its fields. */
  nested(field: number, write: (message: this) => void): this {
    this.#writer.varint(field * 8 + BYTES);
    const mark = this.#writer.begin();
    write(this);
    this.#writer.end(mark);
    return this;
  }

  /** Encodes signed integers, packed. */
  packedZigzag(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    this.#writer.varint(field * 8 + BYTES);
    const mark = this.#writer.begin();
    for (const value of values) this.#writer.signed(value);
    this.#writer.end(mark);
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#writer.varint(field * 8 + BYTES);
    this.#writer.bytes(value);
    return this;
  }

  /** Appends the fields of another message. */
  fields(other: Uint8Array): this {
    this.#writer.raw(other);
    return this;
  }

  finish(): Buffer {
    return Buffer.from(this.#writer.take());
  }
}

/** Returns the fields of a message in order: varints as numbers, texts and messages as bytes; skips the others. */
export function protobufFields(message: Buffer): (readonly [number, number | Buffer])[] {
  const fields: (readonly [number, number | Buffer])[] = [];
  let at = 0;
  const varint = (): number => {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const [field, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === VARINT) fields.push([field, varint()]);
    else if (kind === BYTES) {
      const length = varint();
      fields.push([field, message.subarray(at, at + length)]);
      at += length;
    } else at += kind === FIXED64 ? 8 : 4;
  }
  return fields;
}
