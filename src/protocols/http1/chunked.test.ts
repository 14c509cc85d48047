import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChunkedReader } from "./chunked.ts";
import { CHUNK_EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX } from "./limits.ts";

function read(text: string): {
  outcome: string;
  body: string;
  taken: number;
  problem: string | null;
} {
  const reader = new ChunkedReader();
  const buffer = Buffer.from(text, "latin1");
  let body = "";
  const outcome = reader.feed(buffer, 0, buffer.length, (from, end) => {
    body += buffer.toString("latin1", from, end);
  });
  return { outcome, body, taken: reader.taken, problem: reader.problem };
}

describe("valid bodies", () => {
  it.each([
    ["0\r\n\r\n", ""],
    ["000\r\n\r\n", ""],
    ["3\r\nabc\r\n0\r\n\r\n", "abc"],
    ["0003\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde"],
    ["A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"],
    ['1;a\r\nx\r\n1;a=b;c="d e"\r\ny\r\n0;last\r\n\r\n', "xy"],
    ["2\r\n\r\n\r\n0\r\n\r\n", "\r\n"],
    ["1\r\nx\r\n0\r\nExpires: never\r\nX:\r\n\r\n", "x"],
  ])("%j", (text, body) => {
    expect(read(text)).toMatchObject({ outcome: "done", body, taken: text.length });
    expect(read(`${text}HTTP/1.1`)).toMatchObject({ outcome: "done", body, taken: text.length });
    expect(read(text.slice(0, -1))).toMatchObject({ outcome: "more", taken: text.length - 1 });
  });
});

describe("malformed bodies", () => {
  it.each([
    ["\r\n", "a chunk size is missing"],
    [";a\r\n", "a chunk size is missing"],
    ["g\r\n", "a chunk size is missing"],
    ["-1\r\n", "a chunk size is missing"],
    [" 1\r\n", "a chunk size is missing"],
    ["0x1\r\n", "a chunk size is not hexadecimal"],
    ["1 \r\n", "a chunk size is not hexadecimal"],
    ["1\n", "a chunk size is not hexadecimal"],
    ["1\rx", "a chunk size line ends without LF"],
    ["10000000000000\r\n", "a chunk size is too large"],
    ["ffffffffffffffff\r\n", "a chunk size is too large"],
    ["1;a\nx", "a chunk extension contains a control character"],
    ["1;a\0", "a chunk extension contains a control character"],
    ["1;a\rb", "a chunk size line ends without LF"],
    ["1\r\nab", "a chunk is longer than its size"],
    ["1\r\na\n", "a chunk is longer than its size"],
    ["1\r\na\rb", "a chunk ends without LF"],
    ["0\r\n\rx", "the last chunk does not end with CRLF"],
    ["0\r\n\n", "a trailer has an invalid name"],
    ["0\r\n: x\r\n", "a trailer has an invalid name"],
    ["0\r\nX y: z\r\n", "a trailer has an invalid name"],
    ["0\r\n X: z\r\n", "a trailer has an invalid name"],
    ["0\r\nX: a\n", "a trailer contains a control character"],
    ["0\r\nX: a\0", "a trailer contains a control character"],
    ["0\r\nX: a\rb", "a trailer ends without LF"],
  ])("%j: %s", (text, problem) => {
    expect(read(text)).toMatchObject({ outcome: "broken", problem });
  });

  it("limits the extensions of all chunks together", () => {
    const line = `1;${"e".repeat(1023)}\r\nx\r\n`;
    const fits = Math.floor(CHUNK_EXTENSION_BYTES_MAX / 1023);
    expect(read(line.repeat(fits)).outcome).toBe("more");
    expect(read(line.repeat(fits + 1)).problem).toBe("the chunk extensions are too long");
  });

  it("limits the trailers", () => {
    const line = `X: ${"t".repeat(1019)}\r\n`;
    const fits = TRAILER_BYTES_MAX / line.length;
    expect(read(`0\r\n${line.repeat(fits)}`).outcome).toBe("more");
    expect(read(`0\r\n${line.repeat(fits)}\r`).problem).toBe("the trailers are too long");
  });
});

it("accepts a chunk of the largest size without buffering it", () => {
  const reader = new ChunkedReader();
  let got = 0;
  const count = (from: number, end: number): void => {
    got += end - from;
  };
  const size = Buffer.from("fffffffffffff\r\n");
  expect(reader.feed(size, 0, size.length, count)).toBe("more");
  const piece = Buffer.alloc(65_536);
  for (let i = 0; i < 100; i++) expect(reader.feed(piece, 0, piece.length, count)).toBe("more");
  expect(got).toBe(100 * 65_536);
});

it("starts over after a reset, whatever it has read before", () => {
  const proper = Buffer.from("3;a\r\nabc\r\n0\r\nX: y\r\n\r\n");
  const broken = Buffer.from("2;bb\r\nab\r\n0;c\r\nX: y\r\nZ");
  const reader = new ChunkedReader();
  for (let length = 0; length <= broken.length; length++) {
    reader.reset();
    reader.feed(broken, 0, length, () => undefined);
    reader.reset();
    let body = "";
    const outcome = reader.feed(proper, 0, proper.length, (from, end) => {
      body += proper.toString("latin1", from, end);
    });
    expect({ outcome, body, taken: reader.taken }).toEqual({
      outcome: "done",
      body: "abc",
      taken: proper.length,
    });
  }
});

it("returns any content, split anywhere on both sides", () => {
  const content = fc.uint8Array({ maxLength: 200 });
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(content, sizes, sizes, (bytes, chunkSizes, pieceSizes) => {
      const encoded = encode(Buffer.from(bytes), chunkSizes);
      const wire = Buffer.concat([encoded, Buffer.from("behind")]);
      const reader = new ChunkedReader();
      const got: Buffer[] = [];
      let at = 0;
      let outcome = "more";
      for (let i = 0; outcome === "more"; i++) {
        const end = Math.min(at + (pieceSizes[i % pieceSizes.length] ?? 1), wire.length);
        outcome = reader.feed(wire, at, end, (from, to) => got.push(wire.subarray(from, to)));
        at += reader.taken;
      }
      expect(outcome).toBe("done");
      expect(at).toBe(encoded.length);
      expect(Buffer.concat(got)).toEqual(Buffer.from(bytes));
    }),
    { seed: 7, numRuns: 500 },
  );
});

function encode(content: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (let i = 0; at < content.length; i++) {
    const piece = content.subarray(at, at + (sizes[i % sizes.length] ?? 1));
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
    at += piece.length;
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}
