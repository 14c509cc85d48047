import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteWriter } from "../core/base/bytes.ts";
import { Random } from "../core/base/random.ts";
import { deflate } from "../host/deflate.ts";
import { ChunkReader, toChunks } from "./chunk.ts";
import { CHUNK_BYTES, TRANSFER_BYTES_MAX } from "./limits.ts";

function roundTrip(message: Uint8Array, compressed: boolean): number {
  const chunked = toChunks(message, compressed ? deflate : null, 1);
  if (!chunked.ok) throw new Error(chunked.problem);
  const reader = new ChunkReader(deflate);
  chunked.chunks.forEach((chunk, i) => {
    const received = reader.push(chunk);
    const last = i === chunked.chunks.length - 1;
    expect(received.kind).toBe(last ? "message" : "partial");
    if (received.kind === "message") expect(Buffer.compare(received.bytes, message)).toBe(0);
  });
  expect(reader.midTransfer).toBe(false);
  return chunked.chunks.length;
}

const noise = (length: number): Uint8Array => {
  const random = new Random("noise");
  return Uint8Array.from({ length }, () => random.below(256));
};
const problem = (reader: ChunkReader, chunk: Uint8Array): string => {
  const received = reader.push(chunk);
  return received.kind === "refused" ? received.problem : received.kind;
};
const part = (transfer: number, total: number, offset: number, bytes: Uint8Array): Uint8Array => {
  const out = new ByteWriter();
  out.uint8(2);
  out.varint(transfer);
  out.varint(total);
  out.varint(offset);
  out.raw(bytes);
  return out.take();
};

describe("chunks", () => {
  it("carry any message whole, compressed or not", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.boolean(), (message, compressed) => {
        expect(roundTrip(message, compressed)).toBe(1);
      }),
    );
  });

  it("carry a message of several frames in parts (C20-1)", () => {
    expect(roundTrip(noise(2.5 * CHUNK_BYTES), true)).toBe(3);
  });

  it("are sent uncompressed if they would look like a bomb", () => {
    expect(roundTrip(new Uint8Array(900_000), true)).toBe(1);
  });

  it("refuse to send more than a transfer may be", () => {
    const chunked = toChunks(new Uint8Array(TRANSFER_BYTES_MAX + 1), null, 1);
    expect(chunked.ok).toBe(false);
  });

  it("refuse bombs by their declared size, and lies about it when inflation reaches it (SEC-9, B-48)", () => {
    const zeros = deflate.deflate(new Uint8Array(10_000_000));
    const declared = (length: number): Uint8Array => {
      const out = new ByteWriter(zeros.length + 16);
      out.uint8(1);
      out.varint(length);
      out.raw(zeros);
      return out.take();
    };
    const reader = new ChunkReader(deflate);
    expect(problem(reader, declared(10_000_000))).toContain("that inflate to 10000000");
    expect(problem(reader, declared(1_000_000))).toBe("a chunk does not inflate");
    expect(problem(reader, declared(2 ** 50))).toContain("that inflate to");
    expect(problem(new ChunkReader(null), declared(1_000_000))).toBe(
      "compression was not agreed on",
    );
  });

  it("refuse parts out of place, too long, too many or too large, before keeping them", () => {
    const byte = Uint8Array.of(1);
    expect(problem(new ChunkReader(null), part(1, 10, 5, byte))).toContain("begin at its start");
    expect(problem(new ChunkReader(null), part(1, 2 ** 40, 0, byte))).toContain("a transfer of");
    const gap = new ChunkReader(null);
    expect(problem(gap, part(1, 10, 0, byte))).toBe("partial");
    expect(problem(gap, part(1, 10, 2, byte))).toContain("does not continue");
    expect(problem(gap, part(1, 10, 1, new Uint8Array(20)))).toContain("exceeds");
    const many = new ChunkReader(null);
    for (let i = 0; i < 4; i++) expect(problem(many, part(i, 10, 0, byte))).toBe("partial");
    expect(problem(many, part(5, 10, 0, byte))).toBe("too many open transfers");
    expect(problem(many, Uint8Array.of())).toBe("an unknown kind of chunk");
  });
});
