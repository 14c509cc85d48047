import { describe, expect, it } from "vitest";
import { RedisError, type RedisReply } from "./resp.ts";
import { RespReader } from "./resp-reader.ts";

function readAll(pieces: readonly Buffer[], bytesMax = 1_000_000): [RedisReply[], string | null] {
  const replies: RedisReply[] = [];
  const reader = new RespReader({ reply: (value) => replies.push(value) }, bytesMax);
  for (const piece of pieces) {
    // The buffer is shared: bytes that were not copied are lost.
    const shared = Buffer.from(piece);
    if (!reader.feed(shared, shared.length)) break;
    shared.fill(0);
  }
  return [replies, reader.problem];
}

const WIRE = Buffer.from(
  "+OK\r\n:-7\r\n:9223372036854775807\r\n$5\r\nhe\r\no\r\n$-1\r\n$0\r\n\r\n*-1\r\n*0\r\n" +
    "*3\r\n:1\r\n*2\r\n+a\r\n$1\r\nb\r\n_\r\n#t\r\n#f\r\n,1.5\r\n,-inf\r\n(123456789012345678901\r\n" +
    "%2\r\n+k\r\n:1\r\n+l\r\n*1\r\n:2\r\n~1\r\n+s\r\n=7\r\ntxt:abc\r\n!9\r\nERR blobs\r\n" +
    ">2\r\n+news\r\n:1\r\n|1\r\n+ttl\r\n:3\r\n:8\r\n-WRONGTYPE no\r\n",
);

const VALUES = [
  "OK",
  -7,
  9223372036854775807n,
  "he\r\no",
  null,
  "",
  null,
  [],
  [1, ["a", "b"], null],
  true,
  false,
  1.5,
  -Infinity,
  123456789012345678901n,
  new Map<unknown, unknown>([
    ["k", 1],
    ["l", [2]],
  ]),
  ["s"],
  "abc",
  new RedisError("ERR blobs"),
  8,
  new RedisError("WRONGTYPE no"),
];

/** Text instead of bytes, for comparison. */
function plain(value: RedisReply): unknown {
  if (Buffer.isBuffer(value)) return value.toString();
  if (value instanceof Map)
    return new Map([...value].map(([key, item]) => [key, plain(item as RedisReply)]));
  return Array.isArray(value) ? (value as RedisReply[]).map(plain) : value;
}

describe("replies of RESP2 and RESP3", () => {
  it("are read whole", () => {
    const [replies, problem] = readAll([WIRE]);
    expect(problem).toBeNull();
    expect(replies.map(plain)).toEqual(VALUES);
  });

  it("are the same however they are split in two, and byte by byte", () => {
    for (let cut = 1; cut < WIRE.length; cut++) {
      const [replies, problem] = readAll([WIRE.subarray(0, cut), WIRE.subarray(cut)]);
      expect(problem).toBeNull();
      expect(replies.map(plain)).toEqual(VALUES);
    }
    const [replies] = readAll([...WIRE].map((byte) => Buffer.of(byte)));
    expect(replies.map(plain)).toEqual(VALUES);
  });

  it("cost their length once, however many reads they take", () => {
    const items = 20_000;
    const wire = Buffer.from(`*${items}\r\n${":1\r\n".repeat(items)}`);
    const pieces: Buffer[] = [];
    for (let at = 0; at < wire.length; at += 7) pieces.push(wire.subarray(at, at + 7));
    const [[list]] = readAll(pieces);
    expect(list).toHaveLength(items);
  });

  it("are bounded in total, not individually", () => {
    expect(readAll([Buffer.from("*2\r\n$6\r\nabcdef\r\n$6\r\n")], 10)[1]).toContain("bodyBytesMax");
    expect(readAll([Buffer.from("$6\r\nabcdef\r\n$6\r\nabcdef\r\n")], 10)[1]).toBeNull();
  });

  it("survive any byte at any position without throwing", () => {
    for (let at = 0; at < WIRE.length; at++) {
      for (const byte of [0, 10, 13, 36, 42, 255]) {
        const wire = Buffer.from(WIRE);
        wire[at] = byte;
        expect(() => readAll([wire])).not.toThrow();
      }
    }
  });
});
