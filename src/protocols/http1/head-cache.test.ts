import { describe, expect, it } from "vitest";
import { BODY_LENGTH, Head, parseHead } from "./head.ts";
import { HeadCache } from "./head-cache.ts";

const buffer = Buffer.allocUnsafeSlow(4_096);
const words = new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length / 4);

function read(text: string): { readonly head: Head; readonly end: number; readonly count: number } {
  const count = buffer.write(text, "latin1");
  const head = new Head();
  return { head, end: parseHead(head, buffer, 0, count, false), count };
}

const answer = (date: string, extra = ""): string =>
  `HTTP/1.1 200 OK\r\nDate: ${date}\r\nContent-Length: 5\r\n${extra}\r\nhello`;

describe("the head cache", () => {
  it("recognises a cached head, and only that one, byte for byte", () => {
    const cache = new HeadCache();
    const first = read(answer("Sun 00:00:01"));
    expect(cache.find(buffer, words, first.count, false)).toBeNull();
    cache.keep(buffer, first.end, first.head, false);
    const found = cache.find(buffer, words, first.count, false);
    expect(found).toMatchObject({ status: 200, bodyKind: BODY_LENGTH, bodyLength: 5 });
    for (let at = 0; at < first.end; at++) {
      const other = new HeadCache();
      other.keep(buffer, first.end, first.head, false);
      buffer[at] = (buffer[at] as number) ^ 1;
      expect(other.find(buffer, words, first.count, false)).toBeNull();
      buffer[at] = (buffer[at] as number) ^ 1;
    }
  });

  it("recognises the heads of a journey's calls in any order", () => {
    const cache = new HeadCache();
    const texts = [..."12345678"].map(
      (length) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`,
    );
    const seen = texts.flatMap((text, at) => [text, texts[(at * 3) % texts.length] ?? ""]);
    for (const text of [...texts, ...seen]) {
      const { count, end, head } = read(text);
      const found = cache.find(buffer, words, count, false);
      if (found === null) cache.keep(buffer, end, head, false);
      else expect([found.bodyLength, cache.length]).toEqual([head.bodyLength, end]);
    }
    for (const text of texts) {
      const { count, head } = read(text);
      expect(cache.find(buffer, words, count, false)?.bodyLength).toBe(head.bodyLength);
    }
  });

  it("distinguishes a shorter read, and the response to HEAD, from the whole", () => {
    const cache = new HeadCache();
    const { count, end, head } = read(answer("Sun 00:00:01"));
    cache.keep(buffer, end, head, false);
    expect(cache.find(buffer, words, end - 1, false)).toBeNull();
    expect(cache.find(buffer, words, count, true)).toBeNull();
  });

  it("never caches heads with cookies or a redirect, which must be processed each time", () => {
    const cache = new HeadCache();
    for (const extra of ["Set-Cookie: a=1\r\n", "Location: /there\r\n"]) {
      const { count, end, head } = read(answer("Sun 00:00:01", extra));
      cache.keep(buffer, end, head, false);
      expect(cache.find(buffer, words, count, false)).toBeNull();
    }
  });

  it("pauses when every head differs, and tries again later", () => {
    const cache = new HeadCache();
    const last = (): ReturnType<typeof read> => {
      const one = read(answer("Sun 00:00:99"));
      cache.keep(buffer, one.end, one.head, false);
      return one;
    };
    for (let i = 0; i < 40; i++) {
      const { count, end, head } = read(answer(`Sun 00:00:${10 + i}`));
      cache.find(buffer, words, count, false);
      cache.keep(buffer, end, head, false);
    }
    const { count } = last();
    expect(cache.find(buffer, words, count, false)).toBeNull();
    for (let i = 0; i < 1_000; i++) cache.find(buffer, words, count, false);
    last();
    expect(cache.find(buffer, words, count, false)).not.toBeNull();
  });
});
