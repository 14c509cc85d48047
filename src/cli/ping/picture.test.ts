import { describe, expect, it } from "vitest";
import { drawAnswer, drawFailure, drawSpread } from "./picture.ts";
import type { PingAnswer } from "./probe.ts";

const plain = { colour: false, columns: 80 };
const answer: PingAnswer = {
  ok: true,
  address: "127.0.0.1",
  port: 8089,
  protocol: "HTTP/1.1",
  status: 200,
  statusText: "OK",
  headers: {},
  headBytes: 120,
  bodyBytes: 2_048,
  tls: null,
  phases: { dns: 1, connect: 1, tls: null, firstByte: 5, body: 1 },
  totalMs: 8,
};

describe("the picture of an answer", () => {
  it("has a bar per phase, each beginning where the previous one ended", () => {
    expect(drawAnswer(answer, plain)).toBe(
      [
        "  status      200 OK",
        "  address     127.0.0.1:8089",
        "  protocol    HTTP/1.1",
        "  size        2.05 kB body, 120 B head",
        "",
        "  DNS           1.00 ms  ██████",
        "  connect       1.00 ms        ██████",
        "  first byte    5.00 ms              ██████████████████████████████",
        "  body          1.00 ms                                            ██████",
        "  total         8.00 ms",
      ].join("\n"),
    );
  });

  it("fits the terminal, however narrow a phase or the window is", () => {
    const phases = { dns: null, connect: 0.0001, tls: null, firstByte: 1_000, body: 0.0001 };
    for (const columns of [20, 60, 80, 200]) {
      const lines = drawAnswer(
        { ...answer, phases, totalMs: 1_000.0002 },
        { colour: false, columns },
      );
      for (const line of lines.split("\n")) {
        expect(line.length).toBeLessThanOrEqual(Math.max(columns, 40));
      }
      expect(lines.match(/█/g)?.length).toBeGreaterThanOrEqual(3);
    }
  });

  it("points out a certificate that expires soon, has expired or is not trusted", () => {
    const tls = {
      version: "TLSv1.3",
      cipher: "TLS_AES_128_GCM_SHA256",
      subject: "a\x1b[2Jb",
      issuer: "c",
      expiresAt: "2030-01-02T00:00:00.000Z",
      expiresInDays: 3,
      distrust: "CERT_HAS_EXPIRED",
    };
    const drawn = drawAnswer({ ...answer, tls }, { colour: true, columns: 80 });
    expect(drawn).toContain("\x1b[31mexpires 2030-01-02 (in 3 days)");
    expect(drawn).toContain("not trusted: CERT_HAS_EXPIRED");
    expect(drawn).toContain("ab by c");
    const past = drawAnswer({ ...answer, tls: { ...tls, expiresInDays: -5 } }, plain);
    expect(past).toContain("expired 2030-01-02 (5 days ago)");
    expect(past).not.toContain("\x1b");
  });
});

it("shows kind, code and remedy of a failure", () => {
  const failure = {
    ok: false,
    kind: "refused",
    phase: "connect",
    code: "ECONNREFUSED",
    message: "nothing listens on a:1",
    hint: "Is the server started?",
    totalMs: 2,
  } as const;
  expect(drawFailure(failure, plain)).toBe(
    "  refused: nothing listens on a:1 [ECONNREFUSED]\n  after 2.00 ms, during connect\n  Is the server started?",
  );
});

it("summarises several answers by phase", () => {
  const later = { ...answer, totalMs: 10, phases: { ...answer.phases, firstByte: 7 } };
  const lines = drawSpread([answer, later], 3).split("\n");
  expect(lines[0]).toBe("2 of 3 answered");
  expect(lines).toContain("  first byte    5.00 ms  6.00 ms  7.00 ms");
  expect(lines.join()).not.toContain("TLS");
  expect(drawSpread([], 2)).toContain("0 of 2 answered");
});
