/** Compressed responses: the limit of one, and of all on a core. */

import nodeHttp from "node:http";
import nodeHttp2 from "node:http2";
import type net from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { DECODED_BYTES_PER_CORE_MAX, decodedBytesCached } from "../http/decoded-bodies.ts";
import { Http2Client } from "../http2/client.ts";
import { TestSession } from "../testing/session.ts";
import { HttpClient } from "./client.ts";

const MIB = 1024 * 1024;
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

function session(): TestSession {
  const made = new TestSession();
  closers.push(() => made.close());
  return made;
}

/** Answers every request with that many zero bytes, gzipped to a thousandth. */
async function serve(bytes: number, version: "1" | "2" = "1"): Promise<string> {
  const body = gzipSync(Buffer.alloc(bytes));
  const answer = (
    _: unknown,
    response: nodeHttp.ServerResponse | nodeHttp2.Http2ServerResponse,
  ) => {
    response.setHeader("content-encoding", "gzip");
    response.end(body);
  };
  const server = version === "1" ? nodeHttp.createServer(answer) : nodeHttp2.createServer(answer);
  closers.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
}

describe("a gzip bomb", () => {
  it("is rejected beyond bodyBytesMax, with advice that helps", async () => {
    const url = await serve(63 * MIB);
    const client = new HttpClient(session());
    const answer = await client.get(url);
    expect(answer.ok).toBe(true);
    expect(() => answer.text()).toThrow(
      /longer than 16777216 bytes once decompressed .* pass a larger \{ bodyBytesMax \}/,
    );
    expect(decodedBytesCached()).toBe(0);
    const larger = await client.get(url, { bodyBytesMax: 63 * MIB });
    expect(larger.bytes().length).toBe(63 * MIB);
  });

  it.each(["1", "2"] as const)(
    "of many users stays within the core's budget: HTTP/%s",
    async (version) => {
      const url = await serve(15 * MIB, version);
      const users = Array.from({ length: 12 }, session);
      const answers = await Promise.all(
        users.map((user) =>
          (version === "1" ? new HttpClient(user) : new Http2Client(user)).get(url),
        ),
      );
      for (const answer of answers) {
        expect(answer.bytes().length).toBe(15 * MIB);
        expect(decodedBytesCached()).toBeLessThanOrEqual(DECODED_BYTES_PER_CORE_MAX);
      }
      expect(decodedBytesCached()).toBe(60 * MIB);
      // Evicted bodies are not lost: reading one again returns the same bytes.
      const [first] = answers;
      expect(first?.bytes().equals(Buffer.alloc(15 * MIB))).toBe(true);
      // Two reads in a row decompress once.
      expect(first?.bytes()).toBe(first?.bytes());
      for (const user of users) user.reset();
      expect(decodedBytesCached()).toBe(0);
      expect(answers[11]?.bytes().length).toBe(15 * MIB);
      for (const user of users) user.close();
      expect(decodedBytesCached()).toBe(0);
    },
  );
});

describe("a body that is too long to keep", () => {
  it("explains how to keep it, and the advice works", async () => {
    const server = nodeHttp.createServer((_, response) => response.end(Buffer.alloc(17 * MIB)));
    closers.push(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
    const client = new HttpClient(session());
    const answer = await client.get(url, { readBody: true });
    expect(() => answer.text()).toThrow(/longer than 16777216 bytes .*\{ bodyBytesMax \}/);
    const kept = await client.get(url, { bodyBytesMax: 17 * MIB });
    expect(kept.bytes().length).toBe(17 * MIB);
    const small = await client.get(url, { bodyBytesMax: 10 });
    expect(() => small.text()).toThrow("longer than 10 bytes");
    const unread = await client.get(url, { readBody: false });
    expect(() => unread.text()).toThrow("pass { readBody: true }");
  });
});
