/**
 * Snappy's block form with literals only: valid for every reader, and compresses nothing. Remote write
 * demands the form; a frame is some tens of kilobytes, which is not worth a compressor.
 * (github.com/google/snappy/blob/main/format_description.txt)
 */

import { ByteWriter } from "../../core/base/bytes.ts";

const LITERAL_BYTES_MAX = 65_536;
/** Tag of a literal whose length minus one is in the next two bytes. */
const LITERAL_OF_TWO_BYTES = 61 << 2;

export function snappyLiterals(bytes: Uint8Array): Buffer {
  const writer = new ByteWriter(bytes.length + 64);
  writer.varint(bytes.length);
  for (let at = 0; at < bytes.length; at += LITERAL_BYTES_MAX) {
    const literal = bytes.subarray(at, at + LITERAL_BYTES_MAX);
    const length = literal.length - 1;
    writer.raw(Uint8Array.of(LITERAL_OF_TWO_BYTES, length & 0xff, length >> 8));
    writer.raw(literal);
  }
  return Buffer.from(writer.take());
}
