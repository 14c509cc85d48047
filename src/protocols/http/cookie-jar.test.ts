import fc from "fast-check";
import { CookieJar as ToughJar } from "tough-cookie";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { COOKIES_MAX, COOKIES_PER_DOMAIN_MAX, CookieJar, type CookieOrigin } from "./cookie-jar.ts";
import { COOKIE_BYTES_MAX, parseCookieDate, parseSetCookie } from "./set-cookie.ts";

const NOW = Date.UTC(2026, 0, 15, 12);
const at = (url: string): CookieOrigin => {
  const { hostname, pathname, search, protocol } = new URL(url);
  return { host: hostname, path: pathname + search, secure: protocol === "https:" };
};

function jarWith(url: string, ...lines: string[]): CookieJar {
  const jar = new CookieJar();
  jar.store(lines, at(url), NOW);
  return jar;
}

describe("scope", () => {
  it("is the host that set the cookie, when it named no domain", () => {
    const jar = jarWith("http://shop.test/", "a=1");
    expect(jar.header(at("http://shop.test/x"), NOW)).toBe("a=1");
    expect(jar.header(at("http://www.shop.test/"), NOW)).toBe("");
    expect(jar.header(at("http://test/"), NOW)).toBe("");
  });

  it("is every host below the named domain", () => {
    const jar = jarWith("http://www.shop.test/", "a=1; Domain=.Shop.Test");
    expect(jar.header(at("http://shop.test/"), NOW)).toBe("a=1");
    expect(jar.header(at("http://a.b.shop.test/"), NOW)).toBe("a=1");
    expect(jar.header(at("http://workshop.test/"), NOW)).toBe("");
  });

  it.each([
    ["http://shop.test/", "other.test"],
    ["http://shop.test/", "www.shop.test"],
    ["http://shop.test/", "test"],
    ["http://127.0.0.1/", "0.0.1"],
    ["http://workshop.test/", "shop.test"],
  ])("is empty when %s names the domain %s", (url, domain) => {
    expect(jarWith(url, `a=1; Domain=${domain}`).size).toBe(0);
  });

  it("is an IP address or a bare name that names itself", () => {
    for (const url of ["http://127.0.0.1/", "http://localhost/"]) {
      const jar = jarWith(url, `a=1; Domain=${new URL(url).hostname}`);
      expect(jar.header(at(url), NOW)).toBe("a=1");
      const { host } = at(url);
      expect(jar.header({ host: `x.${host}`, path: "/", secure: false }, NOW)).toBe("");
    }
  });

  it("is at or below the cookie's path, compared by whole segments", () => {
    const jar = jarWith("http://a.test/", "a=1; Path=/shop");
    for (const path of ["/shop", "/shop/", "/shop/cart", "/shop?x=/"]) {
      expect(jar.header(at(`http://a.test${path}`), NOW)).toBe("a=1");
    }
    for (const path of ["/", "/shopping", "/sho", "/x/shop"]) {
      expect(jar.header(at(`http://a.test${path}`), NOW)).toBe("");
    }
  });

  it.each([
    ["/", "/"],
    ["/login", "/"],
    ["/a/b/c", "/a/b"],
    ["/a/b/?next=/x/y", "/a/b"],
  ])("of a cookie set from %s without a path is %s and below", (path, folder) => {
    const jar = jarWith(`http://a.test${path}`, "a=1");
    expect(jar.header(at(`http://a.test${folder}`), NOW)).toBe("a=1");
    if (folder !== "/") expect(jar.header(at("http://a.test/"), NOW)).toBe("");
  });

  it("excludes insecure requests for a secure cookie", () => {
    const jar = jarWith("https://a.test/", "a=1; Secure");
    expect(jar.header(at("https://a.test/"), NOW)).toBe("a=1");
    expect(jar.header(at("http://a.test/"), NOW)).toBe("");
  });

  it.each([
    ["__Secure-a=1", 0],
    ["__Secure-a=1; Secure", 1],
    ["__Host-a=1; Secure; Path=/", 1],
    ["__Host-a=1; Secure; Path=/x", 0],
    ["__Host-a=1; Secure; Path=/; Domain=a.test", 0],
    ["__Host-a=1; Path=/", 0],
  ])("checks the prefix of %s", (line, size) => {
    expect(jarWith("https://a.test/", line).size).toBe(size);
  });
});

describe("expiry", () => {
  it("follows Max-Age, which takes precedence over Expires", () => {
    const jar = jarWith("http://a.test/", "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10");
    expect(jar.header(at("http://a.test/"), NOW + 9_999)).toBe("a=1");
    expect(jar.header(at("http://a.test/"), NOW + 10_000)).toBe("");
  });

  it("follows Expires, else the session", () => {
    const jar = jarWith("http://a.test/", "a=1; Expires=Thu, 15 Jan 2026 12:00:01 GMT", "b=2");
    expect(jar.header(at("http://a.test/"), NOW + 999)).toBe("a=1; b=2");
    expect(jar.header(at("http://a.test/"), NOW + 1_000)).toBe("b=2");
    expect(jar.header(at("http://a.test/"), NOW + 1e12)).toBe("b=2");
  });

  it("is immediate with Max-Age=0 or a past date, and leaves the jar as cheap as a new one", () => {
    for (const end of ["Max-Age=0", "Max-Age=-5", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"]) {
      const jar = jarWith("http://a.test/", "a=1");
      jar.store([`a=gone; ${end}`], at("http://a.test/"), NOW);
      expect([jar.size, jar.header(at("http://a.test/"), NOW)]).toEqual([0, ""]);
    }
  });
});

describe("order", () => {
  it("sorts longer paths first, then older cookies, and keeps the age of a cookie that is set again", () => {
    const jar = jarWith("http://a.test/x/y", "a=1; Path=/", "b=2; Path=/x", "c=3; Path=/");
    jar.store(["a=9; Path=/"], at("http://a.test/"), NOW);
    expect(jar.header(at("http://a.test/x/y"), NOW)).toBe("b=2; a=9; c=3");
  });
});

describe("limits", () => {
  it("evict the oldest cookie of a domain", () => {
    const jar = new CookieJar();
    const lines = Array.from({ length: COOKIES_PER_DOMAIN_MAX + 2 }, (_, i) => `c${i}=x`);
    jar.store(lines, at("http://a.test/"), NOW);
    expect(jar.size).toBe(COOKIES_PER_DOMAIN_MAX);
    const header = jar.header(at("http://a.test/"), NOW);
    expect(header.startsWith("c2=x; ")).toBe(true);
    expect(header.endsWith(`c${COOKIES_PER_DOMAIN_MAX + 1}=x`)).toBe(true);
  });

  it("apply across all domains", () => {
    const jar = new CookieJar();
    for (let host = 0; host < COOKIES_MAX + 10; host++) {
      jar.store(["a=1"], at(`http://h${host}.test/`), NOW);
    }
    expect(jar.size).toBe(COOKIES_MAX);
    expect(jar.header(at("http://h9.test/"), NOW)).toBe("");
    expect(jar.header(at("http://h10.test/"), NOW)).toBe("a=1");
  });

  it("drop an oversized cookie, and an oversized attribute", () => {
    const jar = jarWith("http://a.test/", `a=${"x".repeat(COOKIE_BYTES_MAX)}`);
    expect(jar.size).toBe(0);
    jar.store([`a=1; Path=/${"x".repeat(2_000)}`], at("http://a.test/"), NOW);
    expect(jar.header(at("http://a.test/"), NOW)).toBe("a=1");
  });
});

it.each(["", ";", "a", "=1", " =1", "; a=1", "a\x00=1", "a=1\x07", "a=1\r\nb: c"])(
  "ignores the line %j",
  (line) => {
    expect(parseSetCookie(line, NOW)).toBeNull();
  },
);

it.each([
  ["Sun, 06 Nov 1994 08:49:37 GMT", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["Sunday, 06-Nov-94 08:49:37 GMT", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["Sun Nov  6 08:49:37 1994", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["1 feb 69 1:2:3", Date.UTC(2069, 1, 1, 1, 2, 3)],
  ["30 Feb 2020 00:00:00", null],
  ["1 Jan 1600 00:00:00", null],
  ["1 Jan 2020 24:00:00", null],
  ["tomorrow", null],
])("the date %j is %s", (text, expected) => {
  expect(parseCookieDate(text)).toBe(expected);
});

describe("against tough-cookie", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const host = fc.constantFrom(
    "a.test",
    "www.a.test",
    "x.www.a.test",
    "ba.test",
    "127.0.0.1",
    "b.test",
  );
  const path = fc.constantFrom("/", "/x", "/x/", "/x/y", "/xy", "/x/y/z", "/y?q=/x");
  const origin = fc.record({ host, path, secure: fc.boolean() });
  const month = fc.constantFrom("Jan", "feb", "DEC", "Foo");
  const date = fc
    .tuple(
      fc.integer({ min: 0, max: 33 }),
      month,
      fc.constantFrom(26, 1970, 2025, 2026, 99, 160),
      fc.integer({ min: 0, max: 26 }),
    )
    .map(([day, name, year, hour]) => `Thu, ${day} ${name} ${year} ${hour}:00:00 GMT`);
  const space = fc.constantFrom("", " ", "\t ");
  const attribute = fc.oneof(
    fc.constantFrom("Secure", "HttpOnly", "SameSite=Strict", "", "unknown=1", "secure=no"),
    fc
      .constantFrom(".a.test", "a.test", "WWW.A.test", "b.test", "127.0.0.1", "0.0.1", "")
      .map((d) => `Domain=${d}`),
    fc.constantFrom("/", "/x", "/x/", "/x/y", "x", "", "/y").map((p) => `path=${p}`),
    fc.constantFrom("0", "-1", "5", "3600", "x", "", "1.5").map((age) => `Max-Age=${age}`),
    date.map((text) => `Expires=${text}`),
  );
  const name = fc.constantFrom("a", "b", "c", "__Host-h", "__Secure-s", "", "a b");
  const line = fc
    .tuple(
      name,
      space,
      fc.constantFrom("1", "x=y", "", '"q"', "é"),
      fc.array(fc.tuple(space, attribute), { maxLength: 5 }),
    )
    .map(([key, gap, value, attributes]) =>
      [
        `${gap}${key}${gap}=${gap}${value}`,
        ...attributes.map(([before, text]) => before + text),
      ].join(";"),
    );
  const sets = fc.array(fc.tuple(line, origin, fc.integer({ min: 0, max: 8_000 })), {
    maxLength: 12,
  });

  it("sends every origin the same cookies after any sequence of responses", () => {
    fc.assert(
      fc.property(sets, fc.array(origin, { minLength: 1, maxLength: 6 }), (answers, asks) => {
        const ours = new CookieJar();
        const theirs = new ToughJar(undefined, {
          rejectPublicSuffixes: false,
          allowSpecialUseDomain: true,
          allowSecureOnLocal: false,
          enforceSecureOriginOnStorage: false,
        });
        let now = NOW;
        for (const [text, from, passedMs] of answers) {
          now += passedMs;
          vi.setSystemTime(now);
          ours.store([text], from, now);
          theirs.setCookieSync(text, urlOf(from), { ignoreError: true, now: new Date(now) });
        }
        for (const ask of asks) {
          // Compared as sets: tough-cookie gives a deleted cookie that is set again its old age, against §5.3.
          expect(pairs(ours.header(ask, now))).toEqual(
            pairs(theirs.getCookieStringSync(urlOf(ask))),
          );
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it("survives any text as a Set-Cookie line", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 80 }), (text) => {
        const jar = jarWith("http://a.test/", text);
        expect(jar.header(at("http://a.test/"), NOW)).not.toMatch(/[\r\n\0]/);
      }),
      { numRuns: 2_000 },
    );
  });
});

function urlOf({ host, path, secure }: CookieOrigin): string {
  return `${secure ? "https" : "http"}://${host}${path}`;
}

function pairs(header: string): string[] {
  return header.split("; ").sort();
}
