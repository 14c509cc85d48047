import { describe, expect, it } from "vitest";
import { http } from "../http1/index.ts";
import { http2 } from "../http2/index.ts";
import { DEFAULT_CALL_SETTINGS } from "../protocol.ts";
import type { RequestOptions } from "./request.ts";
import { route } from "./route-part.ts";

const sent = (call: ReturnType<typeof http.get>): string =>
  call.request.message(DEFAULT_CALL_SETTINGS).sent.toString();
const line = (call: ReturnType<typeof http.get>): string => sent(call).split("\r\n")[0] ?? "";

const shop = http.target("http://ada:secret@shop.test:8080/api/", { headers: { "x-run": "7" } });

it("sends the same bytes however a request was described", () => {
  const [plain, routed, composed] = [
    shop.get("/orders/7"),
    shop.get(route`/orders/${7}`),
    shop.get("/orders/7", {}),
  ].map(sent);
  expect(plain).toBe(composed);
  expect(routed).toBe(composed);
  expect(plain).toBe(
    sent(http.get("http://ada:secret@shop.test:8080/api/orders/7", { headers: { "x-run": "7" } })),
  );
  expect(composed).toContain("GET /api/orders/7 HTTP/1.1\r\nhost: shop.test:8080\r\nx-run: 7\r\n");
});

it("caches requests for a literal path without options, and none made in a loop", () => {
  expect(shop.get("/orders")).toBe(shop.get("/orders"));
  expect(shop.get("/orders")).not.toBe(shop.post("/orders"));
  expect(shop.get("/orders", {})).not.toBe(shop.get("/orders", {}));
});

it.each([
  ["/a b", "GET /api/a%20b HTTP/1.1"],
  ["/../b", "GET /b HTTP/1.1"],
  ["/x/./y", "GET /api/x/y HTTP/1.1"],
  ["?q=1", "GET /api?q=1 HTTP/1.1"],
  ["", "GET /api HTTP/1.1"],
  ["/a?x=1&y=%20", "GET /api/a?x=1&y=%20 HTTP/1.1"],
  ["/ümlaut", "GET /api/%C3%BCmlaut HTTP/1.1"],
])("resolves %j like a URL", (path, expected) => {
  expect(line(shop.get(path))).toBe(expected);
});

it("escapes the values of a route, so that none leaves its segment", () => {
  expect(line(shop.get(route`/orders/${"a/b?c"}/x`))).toBe("GET /api/orders/a%2Fb%3Fc/x HTTP/1.1");
  expect(line(shop.get(route`/orders/${".."}/x`))).toBe("GET /api/orders/%2E%2E/x HTTP/1.1");
  expect(() => route`/orders/${undefined as never}`).toThrow(/a value is undefined/);
  const named = route("/orders/{id}/{part}", { id: "a/b?c", part: ".." });
  expect(line(shop.get(named))).toBe("GET /api/orders/a%2Fb%3Fc/%2E%2E HTTP/1.1");
  expect(shop.get(named).title).toBe("GET /orders/{}/{}");
  expect(() => route("/orders/{id}", {} as never)).toThrow("needs a value for {id}");
  expect(line(shop.get(route`/a.${"."}/x`))).toBe("GET /api/a.%2E/x HTTP/1.1");
  expect(line(shop.get(route`/a b/${1}`))).toBe("GET /api/a%20b/1 HTTP/1.1");
  expect(line(shop.get(route`/a/${""}../${1}`))).toBe("GET /api/1 HTTP/1.1");
  expect(() => route`orders/${1}`).toThrow(/begins with/);
});

it("names steps by method and route", () => {
  expect(shop.get(route`/orders/${7}`).title).toBe("GET /orders/{}");
  expect(shop.get("/orders?page=1").title).toBe("GET /orders");
  expect(http.get("http://shop.test/x?y=1").title).toBe("GET /x");
});

it("adds headers of `with` to those of the target and keeps its connections", () => {
  const me = shop.with({ headers: { authorization: "Bearer t" } });
  expect(sent(me.get("/x"))).toContain("x-run: 7\r\nauthorization: Bearer t\r\n");
  const origins = [shop, me].map((one) => one.get("/x").origin().id);
  expect(origins[0]).toBe(origins[1]);
});

describe("a variation of a template", () => {
  /** The same request, composed individually. */
  const alone = (method: "GET" | "POST", path: string, options: RequestOptions): string =>
    sent(
      http.request(method, `http://ada:secret@shop.test:8080/api${path}`, {
        ...options,
        headers: { "x-run": "7", ...options.headers },
      }),
    );
  const token = (text: string): { authorization: string } => ({ authorization: `Bearer ${text}` });

  it("sends the same bytes as an individually composed request, whatever came before", () => {
    for (const text of ["first", "second ümlaut", ""]) {
      const me = shop.with({ headers: token(text) });
      const headers = token(text);
      const json = { text, list: [1, null] };
      expect(sent(me.get(route`/a/${text.length}`))).toBe(
        alone("GET", `/a/${text.length}`, { headers }),
      );
      expect(sent(me.post("/b", { json }))).toBe(alone("POST", "/b", { headers, json }));
      expect(sent(shop.post("/b", { json }))).toBe(alone("POST", "/b", { json }));
      expect(sent(shop.post("/b", { headers, json }))).toBe(alone("POST", "/b", { headers, json }));
      expect(sent(me.post("/b", { body: "x" }))).toBe(alone("POST", "/b", { headers, body: "x" }));
    }
  });

  it("sends JSON of any length and alphabet, with its length in bytes", () => {
    for (const json of ["日本", "é", "a".repeat(20_000), {}, null, "\u2028"]) {
      const body = JSON.stringify(json);
      const request = sent(shop.post("/x", { json }));
      expect(request).toContain(`\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`);
      expect(request.endsWith(`\r\n\r\n${body}`)).toBe(true);
    }
  });

  it("replaces a header regardless of case, and may name those that are added", () => {
    const own = { "X-Run": "8", "user-agent": "mine", "content-type": "text/json", accept: "a/b" };
    for (const run of ["8", "9"]) {
      const me = shop.with({ headers: { ...own, "X-Run": run } });
      const request = sent(me.post("/x", { json: 1 }));
      expect(request).toContain(
        `\r\nX-Run: ${run}\r\nuser-agent: mine\r\ncontent-type: text/json\r\naccept: a/b\r\n`,
      );
      expect(request).not.toContain("x-run");
      expect(request.match(/content-type/gi)).toHaveLength(1);
    }
    const without = shop.with({ headers: { "x-run": undefined } });
    expect(sent(without.get("/x"))).not.toContain("x-run");
  });

  it("depends on the order and number of its headers", () => {
    const twice = [1, 2].flatMap((n) => [
      sent(shop.with({ headers: { a: n, b: "x" } }).get("/")),
      sent(shop.with({ headers: { b: "x", a: n } }).get("/")),
      sent(shop.with({ headers: { a: n } }).get("/")),
    ]);
    expect(twice.map((text) => /x-run: 7\r\n(.*)authorization/s.exec(text)?.[1])).toEqual([
      "a: 1\r\nb: x\r\n",
      "b: x\r\na: 1\r\n",
      "a: 1\r\n",
      "a: 2\r\nb: x\r\n",
      "b: x\r\na: 2\r\n",
      "a: 2\r\n",
    ]);
  });

  it("is a snapshot: later changes of the values have no effect", () => {
    const headers = token("mine");
    const json = { count: 1 };
    const me = shop.with({ headers });
    const described = me.post("/x", { json });
    headers.authorization = "Bearer other";
    json.count = 2;
    expect(sent(described)).toContain("Bearer mine");
    expect(sent(described)).toContain('{"count":1}');
    expect(sent(me.post("/x", { body: "x" }))).toContain("Bearer mine");
  });

  it.each([
    [{ authorization: "a\r\nx: y" }, /the value of header "authorization" contains/],
    [{ authorization: null }, /header "authorization" is null/],
    [{ "a b": "c" }, /"a b" is not a header name/],
  ])("rejects headers that would split a request, also the second time: %o", (headers, problem) => {
    shop.with({ headers: token("fine") });
    const given = headers as unknown as { authorization: string };
    for (let time = 0; time < 2; time++) {
      expect(() => shop.with({ headers: given })).toThrow(problem);
      expect(() => shop.get("/x", { headers: given })).toThrow(problem);
    }
    expect(() => shop.post("/x", { json: new Map() })).toThrow(/json is a Map/);
    expect(() => shop.post("/x", { json: 1, body: "x" })).toThrow(/one content/);
    expect(() => shop.get("/x", { jsn: 1 } as RequestOptions)).toThrow(/no option "jsn"/);
  });

  it("exposes the whole request when more than its bytes is read", () => {
    const me = shop.with({ headers: token("t") });
    const { source } = me.post("/x?a=1", { json: { b: 2 } }).request.message(DEFAULT_CALL_SETTINGS);
    expect(source).toMatchObject({ method: "POST", path: "/api/x?a=1" });
    expect(source.url.href).toBe("http://shop.test:8080/api/x?a=1");
    expect(source.headers).toContainEqual(["authorization", "Bearer t"]);
    expect(String(source.body)).toBe('{"b":2}');
  });

  it("works for HTTP/2 alike", () => {
    const target = http2.target("https://shop.test");
    for (const text of ["first", "second"]) {
      const { request } = target.with({ headers: token(text) }).post("/x", { json: [text] });
      const message = request.message(DEFAULT_CALL_SETTINGS);
      expect(String(message.sent).split("\r\n")).toEqual(
        expect.arrayContaining([
          ":path: /x",
          `authorization: Bearer ${text}`,
          `content-length: ${text.length + 4}`,
        ]),
      );
      expect(String(message.source.body)).toBe(JSON.stringify([text]));
    }
  });
});

it("works for HTTP/2 alike", () => {
  const target = http2.target("https://shop.test", { headers: { "x-run": "7" } });
  const [first, second] = [target.get("/a"), target.get(route`/b/${1}`)].map((call) =>
    call.request.message(DEFAULT_CALL_SETTINGS),
  );
  expect(String(first?.sent).split("\r\n")).toEqual(
    expect.arrayContaining([":path: /a", "x-run: 7"]),
  );
  expect(String(second?.sent).split("\r\n")).toEqual(
    expect.arrayContaining([":path: /b/1", "x-run: 7"]),
  );
});

it("throws an error that shows the line to write when a description is awaited", async () => {
  const awaited = (async () => await (shop.get("/orders") as unknown as Promise<unknown>))();
  await expect(awaited).rejects.toThrow(/GET \/orders is only described.*await step\("name", …\)/);
});
