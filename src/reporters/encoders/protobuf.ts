/** The few kinds of protobuf fields that remote write and Bigtable need. (protobuf.dev/programming-guides/encoding) */

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

/** Fields of a message in their order: varints as numbers, texts and messages as bytes; others are left out. */
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
