/** The parsers of this folder against llhttp, over generated responses; `npm run fuzz:http1` runs longer. */

import { describe, expect, it } from "vitest";
import { Random } from "../../core/base/random.ts";
import { HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX } from "./limits.ts";
import { compareWithLlhttp, LOOSER, STRICTER } from "./testing/compare.ts";
import { cut, generateAnswer } from "./testing/generate.ts";
import { readAnswer } from "./testing/read-answer.ts";

const ANSWERS = 8000;
const ok = "HTTP/1.1 200 OK\r\n";

describe("generated responses", () => {
  it("have the same outcome as in llhttp, except for the listed differences", () => {
    const ends = { complete: 0, broken: 0, incomplete: 0 };
    for (let i = 0; i < ANSWERS; i++) {
      const random = new Random(`oracle/${i}`);
      const answer = generateAnswer(random);
      const { ours, problem } = compareWithLlhttp(answer, cut(random, answer.bytes));
      ends[ours.end]++;
      expect(problem, `answer ${i}: ${JSON.stringify(answer.bytes.toString("latin1"))}`).toBeNull();
    }
    // The generator must not drift to a point where nothing is left to compare.
    for (const count of Object.values(ends)) expect(count).toBeGreaterThan(ANSWERS / 25);
  });

  it("have the same outcome however they are split", () => {
    for (let i = 0; i < ANSWERS / 8; i++) {
      const random = new Random(`cuts/${i}`);
      const { bytes, toHead } = generateAnswer(random);
      const { problem: _, ...whole } = readAnswer([bytes], toHead);
      const single = Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1));
      expect(readAnswer(single, toHead)).toMatchObject(whole);
      for (let j = 0; j < 5; j++) {
        expect(readAnswer(cut(random, bytes), toHead)).toMatchObject(whole);
      }
    }
  });

  it("have the same outcome for every split in two of one response with all features", () => {
    const bytes = Buffer.from(
      `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${ok}Transfer-Encoding: chunked\r\nX: y\r\n\r\n` +
        '3;a="b"\r\nabc\r\n00a\r\n0123456789\r\n0\r\nX: y\r\n\r\nHTTP/1.1',
    );
    const whole = readAnswer([bytes], false);
    expect(whole).toMatchObject({ end: "complete", body: "abc0123456789" });
    for (let at = 0; at <= bytes.length; at++) {
      expect(readAnswer([bytes.subarray(0, at), bytes.subarray(at)], false)).toEqual(whole);
    }
  });
});

describe("each listed difference", () => {
  it.each([
    ["the status line is not HTTP/1.x", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ["the status line is not HTTP/1.x", `\r\n${ok}Content-Length: 0\r\n\r\n`],
    ["the status line is not HTTP/1.x", "HTTP/1.1 200 a\0b\r\nContent-Length: 0\r\n\r\n"],
    ["two Transfer-Encoding headers", `${ok}${"Transfer-Encoding: x\r\n".repeat(2)}\r\n`],
    ["Transfer-Encoding is not a valid list", `${ok}Transfer-Encoding: chunked, x\r\n\r\n`],
    ["Content-Length is not a number", `${ok}Content-Length: ${"0".repeat(16)}\r\n\r\n`],
    [
      "a chunk size is too large",
      `${ok}Transfer-Encoding: chunked\r\n\r\n${"0".repeat(14)}\r\n\r\n`,
    ],
    [
      "a chunk extension contains a control character",
      `${ok}Transfer-Encoding: chunked\r\n\r\n0;a="\x7f"\r\n\r\n`,
    ],
  ])("ours rejects, llhttp accepts: %s", (problem, text) => {
    const bytes = Buffer.from(text, "latin1");
    const { ours, theirs } = compareWithLlhttp({ bytes, toHead: false }, [bytes]);
    expect(ours).toMatchObject({ end: "broken", problem });
    expect(theirs.end).toBe("complete");
    expect(STRICTER.has(problem)).toBe(true);
  });

  it("is shown by one of these examples", () => {
    expect(STRICTER.size).toBe(6);
    expect(LOOSER.size).toBe(2);
  });

  it.each([
    ["Invalid character in chunk extensions", `${ok}Transfer-Encoding: chunked\r\n\r\n0;\r\n\r\n`],
    ["Data after `Connection: close`", `HTTP/1.0 103 x\r\n\r\n${ok}Content-Length: 0\r\n\r\n`],
  ])("ours accepts, llhttp rejects: %s", (problem, text) => {
    const bytes = Buffer.from(text, "latin1");
    const { ours, theirs } = compareWithLlhttp({ bytes, toHead: false }, [bytes]);
    expect(ours.end).toBe("complete");
    expect(theirs).toMatchObject({ end: "broken", problem: expect.stringMatching(`^${problem}`) });
    expect(LOOSER.has(problem)).toBe(true);
  });
});

describe("a hostile server", () => {
  it.each([
    ["one endless header", `${ok}X: `, "x".repeat(1024)],
    ["endless headers", ok, "X: y\r\n"],
    ["endless interim answers", "", "HTTP/1.1 103 Hints\r\n\r\n"],
    ["endless chunk extension", `${ok}Transfer-Encoding: chunked\r\n\r\n1;`, "e".repeat(1024)],
    ["endless trailers", `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n`, "X: y\r\n"],
    ["endless zeros of a chunk size", `${ok}Transfer-Encoding: chunked\r\n\r\n`, "0"],
  ])("with %s is rejected within limits", (_name, start, more) => {
    const limit = HEAD_BYTES_MAX + 2 * INTERIM_ANSWERS_MAX * 1024;
    const count = Math.ceil(limit / more.length);
    const pieces = Array.from({ length: count }, () => Buffer.from(more));
    expect(readAnswer([Buffer.from(start), ...pieces], false).end).toBe("broken");
  });
});
