import { describe, expect, it } from "vitest";
import { isLoopback, listenProblem, refuseForeignPages, requireToken } from "./guard.ts";

describe("the loopback", () => {
  it.each(["localhost", "127.0.0.1", "127.8.9.10", "::1", "[::1]"])("is %s", (host) => {
    expect(isLoopback(host)).toBe(true);
    expect(listenProblem(host, null)).toBeNull();
  });

  it.each(["", "0.0.0.0", "::", "10.0.0.1", "127.evil.example", "127.0.0.1.nip.io", "127.0.0.256"])(
    'is not "%s"',
    (host) => {
      expect(isLoopback(host)).toBe(false);
      expect(listenProblem(host, null)).toMatch(
        /^refusing to listen on .* without authentication$/,
      );
      expect(listenProblem(host, "a token")).toBeNull();
    },
  );
});

describe("a token", () => {
  const token = "correct horse battery staple";
  it.each([
    ["none at all", undefined],
    ["another", "Bearer correct horse battery stable"],
    ["a longer one", `Bearer ${token}!`],
    ["the right one in another scheme", `Basic ${token}`],
    ["an empty one", "Bearer "],
  ])("is rejected: %s", (_, authorization) => {
    expect(() => requireToken({ authorization }, token)).toThrow(/a bearer token is required/);
    expect(() => requireToken({ authorization }, null)).not.toThrow();
  });

  it("is accepted when it is the right one", () => {
    expect(() => requireToken({ authorization: `Bearer ${token}` }, token)).not.toThrow();
  });
});

describe("a page", () => {
  const check = (headers: Record<string, string>, ownPages: boolean, token: string | null = null) =>
    refuseForeignPages(headers, { token, ownPages });

  it("of this server may call where pages are served, and nowhere else", () => {
    const own = { host: "localhost:7600", origin: "http://localhost:7600" };
    expect(() => check(own, true)).not.toThrow();
    expect(() => check(own, false)).toThrow(/web pages/);
  });

  it("of another site is rejected with a token as well, with or without Origin", () => {
    const foreign = { host: "queue.example", origin: "http://evil.example" };
    expect(() => check(foreign, true, "a token")).toThrow(/web pages/);
    for (const site of ["cross-site", "same-site"]) {
      const image = { host: "queue.example", "sec-fetch-site": site, "sec-fetch-mode": "no-cors" };
      expect(() => check(image, true, "a token")).toThrow(/other sites/);
    }
  });

  it("that was rebound to us is rejected by its name", () => {
    expect(() => check({ host: "evil.example:7600" }, true)).toThrow(/not to "evil.example"/);
    expect(() => check({}, true)).toThrow(/loopback name only/);
    expect(() => check({ host: "queue.example" }, true, "a token")).not.toThrow();
  });
});
