/** The few kinds of protobuf fields that remote write needs. (protobuf.dev/programming-guides/encoding) */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** One message; fields are written in the order they are added. */
export class Protobuf {
  readonly #parts: Uint8Array[] = [];

  /** Integers up to 2^53, not negative. */
  varint(field: number, value: number): this {
    return this.#add(varintBytes(field * 8 + VARINT), varintBytes(value));
  }

  /** Signed integers, small ones short. */
  zigzag(field: number, value: number): this {
    return this.varint(field, zigzagOf(value));
  }

  double(field: number, value: number): this {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return this.#add(varintBytes(field * 8 + FIXED64), bytes);
  }

  text(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value));
  }

  message(field: number, value: Protobuf): this {
    return this.bytes(field, value.finish());
  }

  /** Signed integers one behind the other. */
  packedZigzag(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    return this.bytes(field, Buffer.concat(values.map((value) => varintBytes(zigzagOf(value)))));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#add(varintBytes(field * 8 + BYTES), varintBytes(value.length), value);
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #add(...parts: readonly Uint8Array[]): this {
    this.#parts.push(...parts);
    return this;
  }
}

function zigzagOf(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

export function varintBytes(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
