/** HPACK against the examples of RFC 7541 (appendix C), and against Node's own implementation. */

import http2 from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Random } from "../../../core/base/random.ts";
import { HpackDecoder, HpackError } from "./decoder.ts";
import { HpackEncoder } from "./encoder.ts";
import { decodeHuffman, encodeHuffman, huffmanBytes } from "./huffman.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

function decode(decoder: HpackDecoder, bytes: Buffer) {
  const { status, lines, problem } = decoder.decode(bytes, 0, bytes.length);
  return { status, lines, problem };
}

describe("the Huffman code", () => {
  it.each([
    ["www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"],
    ["no-cache", "a8eb 1064 9cbf"],
    ["Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"],
    ["302", "6402"],
  ])("of %s is that of the standard", (text, code) => {
    const bytes: number[] = [];
    encodeHuffman(text, bytes);
    expect(Buffer.from(bytes)).toEqual(hex(code));
    expect(huffmanBytes(text)).toBe(bytes.length);
    expect(decodeHuffman(hex(code), 0, bytes.length)).toBe(text);
  });

  it("returns every octet at every position", () => {
    const all = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join("");
    for (let shift = 0; shift < 8; shift++) {
      const text = "0".repeat(shift) + all;
      const bytes: number[] = [];
      encodeHuffman(text, bytes);
      expect(decodeHuffman(Buffer.from(bytes), 0, bytes.length)).toBe(text);
    }
  });

  it.each([
    ["the end of a string inside it", "3fffffff ff"],
    ["padding of a whole byte", "07ff"],
    ["padding that is not all ones", "00"],
  ])("with %s is rejected", (_what, bytes) => {
    expect(decodeHuffman(hex(bytes), 0, hex(bytes).length)).toBeNull();
  });
});

describe("a block", () => {
  it("changes the table for the blocks that follow (RFC 7541, C.6)", () => {
    const decoder = new HpackDecoder();
    const first = hex(
      "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6" +
        "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    );
    const lines = [
      ["cache-control", "private"],
      ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
      ["location", "https://www.example.com"],
    ];
    expect(decode(decoder, first)).toEqual({ status: 302, lines, problem: null });
    expect(decode(decoder, hex("4883 640e ffc1 c0bf"))).toMatchObject({ status: 307, lines });
    // The same bytes now mean something else; once nothing is added, their meaning is stable.
    expect(decode(decoder, hex("c1c0 bf"))).toMatchObject({ status: 0 });
    expect(decode(decoder, hex("c1c0 bf"))).toMatchObject({ status: 0 });
  });

  it("that adds the same fields adds them every time", () => {
    const decoder = new HpackDecoder();
    // A status of the static table, and "a: 1", which is added.
    const adding = hex("88 4001 6101 31");
    for (let answer = 0; answer < 5; answer++)
      expect(decode(decoder, adding)).toMatchObject({ status: 200, lines: [["a", "1"]] });
    // Added after them; the five follow, and there is no sixth.
    expect(decode(decoder, hex("88 4001 6201 32")).lines).toEqual([["b", "2"]]);
    expect(decode(decoder, hex("88 be bf c0 c1 c2 c3")).lines).toEqual([
      ["b", "2"],
      ...Array.from({ length: 5 }, () => ["a", "1"]),
    ]);
    expect(() => decode(decoder, hex("88 c4"))).toThrow(HpackError);
  });

  it("that adds a field named by its index means something else the next time", () => {
    const decoder = new HpackDecoder();
    decode(decoder, hex("88 4001 6101 31 4001 6201 32"));
    // The name of the field before the last, with another value, which is added.
    const naming = hex("88 7f00 0133");
    expect(decode(decoder, naming).lines).toEqual([["a", "3"]]);
    expect(decode(decoder, naming).lines).toEqual([["b", "3"]]);
  });

  it("that evicts the oldest keeps the positions of the others", () => {
    const decoder = new HpackDecoder();
    const twoDigits = (number: number) => `${100 + (number % 100)}`.slice(1);
    const entries = Math.floor(4096 / (32 + "a".length + "00".length));
    for (let added = 0; added < 400; added++)
      decode(decoder, Buffer.concat([hex("88 4001 6102"), Buffer.from(twoDigits(added))]));
    const valueAt = (index: number) =>
      decode(decoder, index < 127 ? Buffer.of(0x80 | index) : Buffer.of(0xff, index - 127))
        .lines[0]?.[1];
    for (let back = 0; back < entries; back++)
      expect(valueAt(62 + back)).toBe(twoDigits(399 - back));
    expect(() => valueAt(62 + entries)).toThrow(HpackError);
  });

  it.each([
    ["names no field", "ff80 01"],
    ["names field 0", "80"],
    ["ends too early", "4003 6162"],
    ["has a number without end", "ffff ffff ffff ffff 7f"],
    ["makes the table larger than allowed", "3fe2 1f"],
    ["changes the table in its middle", "883f e11f"],
    ["has a string with an invalid Huffman code", "0085 3fff ffff ff01 61"],
  ])("that %s is rejected", (_what, bytes) => {
    expect(() => decode(new HpackDecoder(), hex(bytes))).toThrow(HpackError);
  });

  it("that expands beyond the limit is rejected", () => {
    const decoder = new HpackDecoder();
    const large = Buffer.concat([hex("4001 78 7f 81 1f"), Buffer.alloc(4096, 0x61)]);
    const block = Buffer.concat([large.subarray(0, 6 + 4000), Buffer.alloc(1000, 0xbe)]);
    expect(() => decode(decoder, block)).toThrow(HpackError);
  });

  it.each([
    ["upper-case names", "8800 0141 0162"],
    ["a status of text", "0803 1b50 57"],
    ["no number as content-length", "880f 0d01 61"],
    ["a field of a connection", "8800 0a63 6f6e 6e65 6374 696f 6e01 61"],
    ["a line break in a value", "8800 0161 010a"],
    ["a status behind other fields", "0001 6101 6288"],
    ["two statuses", "8888"],
  ])("with %s is decoded, and has a problem", (_what, bytes) => {
    expect(decode(new HpackDecoder(), hex(bytes)).problem).not.toBeNull();
  });

  it("of random bytes is decoded or rejected, without other effects", () => {
    const random = new Random(7);
    for (let i = 0; i < 20_000; i++) {
      const bytes = Buffer.from(
        Array.from({ length: 1 + random.below(40) }, () => random.below(256)),
      );
      try {
        decode(new HpackDecoder(), bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(HpackError);
      }
    }
  });
});

describe("an encoded block", () => {
  /** A Node server that receives our raw bytes; its decoded headers are the oracle. */
  async function understood(blocks: readonly Buffer[], tableBytes: number): Promise<unknown[]> {
    const server = http2.createServer({ settings: { headerTableSize: tableBytes } });
    closers.push(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    closers.push(() => socket.destroy());
    socket.on("error", () => undefined);
    const got: unknown[] = [];
    const all = new Promise<void>((resolve) => {
      server.on("stream", (stream, headers) => {
        stream.on("error", () => undefined);
        got.push({ ...headers });
        if (got.length === blocks.length) resolve();
      });
    });
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    for (const [at, block] of blocks.entries()) {
      const head = Buffer.alloc(9);
      head.writeUIntBE(block.length, 0, 3);
      head[3] = 1;
      head[4] = 5;
      head.writeUInt32BE(2 * at + 1, 5);
      socket.write(Buffer.concat([head, block]));
    }
    await all;
    return got;
  }

  it.each([4096, 200, 0])("is understood by Node, with a table of %d bytes", async (tableBytes) => {
    const random = new Random(tableBytes + 1);
    const encoder = new HpackEncoder();
    encoder.limit(tableBytes);
    const text = (length: number): string =>
      Array.from({ length }, () => String.fromCharCode(33 + random.below(94))).join("");
    const heads = Array.from({ length: 6 }, (_, i) => ({
      pseudo: [
        [":method", i % 2 === 0 ? "GET" : "PUT"],
        [":scheme", "http"],
        [":authority", `host-${i % 3}.test`],
      ] as const,
      rest: Array.from(
        { length: random.below(6) },
        (_, n) => [`x-${n}`, text(random.below(60))] as const,
      ),
    }));
    const sent = Array.from({ length: 60 }, () => ({
      head: heads[random.below(heads.length)] ?? { pseudo: [], rest: [] },
      path: random.below(3) === 0 ? "/" : `/${"path-".repeat(random.below(80))}`,
      cookies: random.below(2) === 0 ? "" : `c=${text(random.below(200)).replaceAll(";", "")}`,
      traceparent: random.below(2) === 0 ? "" : `00-${"a1".repeat(16)}-${"b2".repeat(8)}-01`,
    }));
    const blocks = sent.map(({ head, ...more }) => encoder.encode({ constant: head, ...more }, 0));
    const got = await understood(blocks, tableBytes);
    for (const [at, { head, path, cookies, traceparent }] of sent.entries()) {
      const fields = [...head.pseudo, [":path", path] as const, ...head.rest];
      const wanted = Object.fromEntries(fields.map(([name, value]) => [name, value.trim()]));
      expect(got[at]).toMatchObject(cookies === "" ? wanted : { ...wanted, cookie: cookies });
      expect(got[at]).toMatchObject(traceparent === "" ? {} : { traceparent });
    }
    expect(blocks.at(-1)?.length).toBeLessThan(1_000);
  });

  it("shrinks to a few bytes once the server knows its fields", () => {
    const encoder = new HpackEncoder();
    const head = {
      pseudo: [
        [":method", "GET"],
        [":scheme", "https"],
        [":authority", "shop.test"],
      ] as const,
      rest: [["user-agent", "hyperscale"] as const],
    };
    const fields = { constant: head, path: "/", cookies: "", traceparent: "" };
    const sizes = [0, 1, 2].map(() => encoder.encode(fields, 0).length);
    expect(sizes[0]).toBeGreaterThan(15);
    expect(sizes.slice(1)).toEqual([5, 5]);
  });
});
