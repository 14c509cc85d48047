import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  BODY_CHUNKED,
  BODY_LENGTH,
  BODY_NONE,
  BODY_UNTIL_CLOSE,
  earlyProblem,
  findHeadEnd,
  HEAD_BROKEN,
  HEAD_INCOMPLETE,
  Head,
  parseHead,
} from "./head.ts";

function parse(text: string, toHead = false): Head {
  const buffer = Buffer.from(text, "latin1");
  expect(findHeadEnd(buffer, 0, 0, buffer.length)).toBe(buffer.length);
  const head = new Head();
  const end = parseHead(head, buffer, 0, buffer.length, toHead);
  expect(end).toBe(head.problem === null ? buffer.length : HEAD_BROKEN);
  return head;
}

const withHeaders = (...lines: string[]): string =>
  ["HTTP/1.1 200 OK", ...lines, "", ""].join("\r\n");

describe("status line", () => {
  it.each([
    ["HTTP/1.1 200 OK", 200],
    ["HTTP/1.1 200 ", 200],
    ["HTTP/1.1 200", 200],
    ["HTTP/1.0 404 Not Found", 404],
    ["HTTP/1.1 999 caf\u00e9\tbar", 999],
    ["HTTP/1.1 100 Continue", 100],
  ])("%j is accepted", (line, status) => {
    expect(parse(`${line}\r\n\r\n`)).toMatchObject({ status, problem: null });
  });

  it.each([
    "\r\nHTTP/1.1 200 OK",
    " HTTP/1.1 200 OK",
    "http/1.1 200 OK",
    "HTTP/2.0 200 OK",
    "HTTP/1.2 200 OK",
    "HTTP/1.1  200 OK",
    "HTTP/1.1\t200 OK",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000",
    "HTTP/1.1 099 Low",
    "HTTP/1.1 2x0 OK",
    "HTTP/1.1 200OK",
    "HTTP/1.1 200 O\0K",
    "HTTP/1.1 200 O\x7fK",
    "HTTP/1.1 200 O\rK",
    "SSH-2.0-OpenSSH_9.6",
  ])("%j is rejected", (line) => {
    expect(parse(`${line}\r\n\r\n`).problem).toBe("the status line is not HTTP/1.x");
  });

  it("rejects an unsolicited protocol switch", () => {
    expect(parse("HTTP/1.1 101 Switching Protocols\r\n\r\n").problem).toMatch(/switches protocols/);
  });
});

describe("header lines", () => {
  it.each([
    "X:",
    "X: ",
    "X:\ty\t",
    "!#$%&'*+-.^_`|~09azAZ: every name character",
    "X: \x80\xff",
    "X: a:b",
  ])("%j is accepted", (line) => {
    expect(parse(withHeaders(line)).problem).toBeNull();
  });

  it.each([
    ": x",
    "X : y",
    "X\t: y",
    "X",
    "X y: z",
    " X: y",
    "\tfolded",
    "X: y\r\n folded",
    "X(: y",
    "\xe9: y",
    "X\0: y",
  ])("%j has an invalid name", (line) => {
    expect(parse(withHeaders(line)).problem).toBe("a header has an invalid name");
  });

  it.each(["X: a\0b", "X: a\rb", "X: a\nb", "X: a\x7f", "X: \x01", "X: a\r\r"])(
    "%j contains a control character",
    (line) => {
      expect(parse(withHeaders(line)).problem).toBe("a header value contains a control character");
    },
  );

  it("detects cookies and a location", () => {
    expect(parse(withHeaders("SET-Cookie: a=1", "location: /x"))).toMatchObject({
      hasSetCookie: true,
      hasLocation: true,
    });
    expect(parse(withHeaders("set_cookie: a=1", "locatio\x4f: /x"))).toMatchObject({
      hasSetCookie: false,
      hasLocation: false,
    });
  });

  it("clears the state of the previous response", () => {
    const head = new Head();
    for (const text of [
      withHeaders("Set-Cookie: a=1", "Location: /", "Connection: close", "Content-Length: 9"),
      withHeaders(": broken"),
      withHeaders("Content-Length: 0"),
    ]) {
      const buffer = Buffer.from(text);
      parseHead(head, buffer, 0, buffer.length, false);
    }
    expect(head).toMatchObject({
      problem: null,
      hasSetCookie: false,
      hasLocation: false,
      keepAlive: true,
      bodyLength: 0,
    });
  });
});

describe("framing", () => {
  it.each([
    [["Content-Length: 5"], BODY_LENGTH, 5],
    [["content-LENGTH:005\t"], BODY_LENGTH, 5],
    [["Content-Length: 999999999999999"], BODY_LENGTH, 999_999_999_999_999],
    [["Content-Length: 0"], BODY_NONE, 0],
    [["Transfer-Encoding: chunked"], BODY_CHUNKED, 0],
    [["transfer-encoding:\tGZIP , ,Chunked"], BODY_CHUNKED, 0],
    [["Transfer-Encoding: gzip"], BODY_UNTIL_CLOSE, 0],
    [["Transfer-Encoding: xchunked"], BODY_UNTIL_CLOSE, 0],
    [["Transfer_Encoding: chunked"], BODY_UNTIL_CLOSE, 0],
    [[], BODY_UNTIL_CLOSE, 0],
  ])("%j", (lines, bodyKind, bodyLength) => {
    expect(parse(withHeaders(...lines))).toMatchObject({ bodyKind, bodyLength, problem: null });
  });

  it.each([
    "Content-Length:",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 5, 5",
    "Content-Length: 5 5",
    "Content-Length: 0x5",
    "Content-Length: 5.0",
    "Content-Length: 1e3",
    "Content-Length: 1000000000000000",
    "Content-Length: \xb2",
  ])("%j is rejected", (line) => {
    expect(parse(withHeaders(line)).problem).toBe("Content-Length is not a number");
  });

  it.each([
    ["two Content-Length headers", ["Content-Length: 5", "content-length: 5"]],
    ["two Transfer-Encoding headers", ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"]],
    [
      "both Content-Length and Transfer-Encoding",
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ],
    [
      "both Content-Length and Transfer-Encoding",
      ["Transfer-Encoding: identity", "Content-Length: 5"],
    ],
    ["Transfer-Encoding is not a valid list", ["Transfer-Encoding:"]],
    ["Transfer-Encoding is not a valid list", ["Transfer-Encoding: chunked, identity"]],
    ["Transfer-Encoding is not a valid list", ["Transfer-Encoding: chunked, chunked"]],
    ["a header value contains a control character", ["Transfer-Encoding: \x0bchunked"]],
  ])("%s: %j", (problem, lines) => {
    expect(parse(withHeaders(...lines)).problem).toBe(problem);
  });

  it.each([
    ["HTTP/1.1 204 No Content", false],
    ["HTTP/1.1 304 Not Modified", false],
    ["HTTP/1.1 103 Early Hints", false],
    ["HTTP/1.1 200 OK", true],
  ])("%s has no body whatever the headers say (to HEAD: %s)", (line, toHead) => {
    for (const framing of ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""]) {
      const head = parse(`${line}\r\n${framing}\r\n`, toHead);
      expect(head).toMatchObject({ bodyKind: BODY_NONE, bodyLength: 0, keepAlive: true });
    }
  });
});

describe("keeping the connection", () => {
  it.each([
    ["HTTP/1.1", [], true],
    ["HTTP/1.1", ["Connection: close"], false],
    ["HTTP/1.1", ["connection: x, CLOSE"], false],
    ["HTTP/1.1", ["Connection: close, keep-alive"], false],
    ["HTTP/1.1", ["Connection: keep-alive, close"], false],
    ["HTTP/1.1", ["Connection: close", "Connection: keep-alive"], false],
    ["HTTP/1.1", ["Connection: closed"], true],
    ["HTTP/1.0", [], false],
    ["HTTP/1.0", ["Connection: Keep-Alive"], true],
    ["HTTP/1.0", ["Connection: keep-alive", "Connection: close"], false],
  ])("%s %j: %s", (version, lines, keepAlive) => {
    const text = [`${version} 200 OK`, "Content-Length: 1", ...lines, "", ""].join("\r\n");
    expect(parse(text).keepAlive).toBe(keepAlive);
  });

  it("is impossible for a body that ends with the connection", () => {
    expect(parse(withHeaders("Connection: keep-alive")).keepAlive).toBe(false);
  });

  it("does not trust a Transfer-Encoding of HTTP/1.0", () => {
    const text = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(parse(text)).toMatchObject({ bodyKind: BODY_CHUNKED, keepAlive: false });
  });
});

describe("the end of a head", () => {
  it("is found from any previously scanned position", () => {
    const text = Buffer.from("..HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody\r\n\r\n");
    const end = text.indexOf("body");
    for (let from = 2; from < end; from++) {
      expect(findHeadEnd(text, 2, from, text.length)).toBe(end);
    }
    for (let length = 0; length < end; length++) expect(findHeadEnd(text, 2, 2, length)).toBe(-1);
  });

  it("does not extend to bytes before the head", () => {
    const text = Buffer.from("\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    expect(findHeadEnd(text, 4, 4, text.length)).toBe(text.length);
    expect(findHeadEnd(text, 2, 2, text.length)).toBe(text.length);
  });
});

describe("early problems", () => {
  it("detects a foreign protocol by the first wrong byte", () => {
    const text = Buffer.from("HTTP/2 ");
    for (let length = 0; length <= 5; length++) expect(earlyProblem(text, 0, 0, length)).toBeNull();
    expect(earlyProblem(text, 0, 0, 6)).toMatch(/not HTTP/);
  });

  it("detects an empty head", () => {
    expect(earlyProblem(Buffer.from("\r\n\r\n"), 0, 0, 4)).toMatch(/not HTTP/);
  });

  it("detects bare line feeds, but none after the end", () => {
    const text = Buffer.from("HTTP/1.1 200 OK\r\nX: y\nZ: z\n");
    expect(earlyProblem(text, 0, 0, 21)).toBeNull();
    expect(earlyProblem(text, 0, 0, 22)).toMatch(/without CR/);
  });

  it("accepts the beginning of a valid head", () => {
    const text = Buffer.from(withHeaders("X: y", "Content-Length: 3"));
    for (let length = 0; length < text.length; length++) {
      expect(earlyProblem(text, 0, 0, length)).toBeNull();
    }
  });
});

describe("any bytes", () => {
  it("never throw and never read beyond the end", () => {
    const byte = fc.oneof(
      fc.constantFrom(..."\r\n: \t0HTP/1.".split("").map((text) => text.charCodeAt(0))),
      fc.nat(255),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 60 }), fc.boolean(), (bytes, toHead) => {
        const text = Buffer.from([...Buffer.from("HTTP/1.1 200\r\n"), ...bytes, 13, 10, 13, 10]);
        const headEnd = findHeadEnd(text, 0, 0, text.length);
        const alone = new Head();
        const end = parseHead(alone, text, 0, text.length, toHead);
        if (end !== HEAD_BROKEN) expect(end).toBe(headEnd);
        // The same head at another offset, followed by other bytes.
        const around = [Buffer.from("xyz"), text.subarray(0, headEnd), Buffer.from("A: b\r\n")];
        const other = new Head();
        const moved = parseHead(other, Buffer.concat(around), 3, headEnd + 3, toHead);
        expect(moved).toBe(end === HEAD_BROKEN ? end : end + 3);
        expect(other).toEqual(alone);
        // Cut short, it is incomplete or already malformed, whatever bytes follow the cut.
        for (let cut = 0; cut < headEnd; cut++) {
          const early = parseHead(new Head(), text, 0, cut, toHead);
          expect(early === HEAD_INCOMPLETE || (early === end && early === HEAD_BROKEN)).toBe(true);
        }
      }),
      { seed: 7, numRuns: 2000 },
    );
  });
});
