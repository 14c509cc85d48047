import { expect, it } from "vitest";
import { http } from "../http1/index.ts";
import { http2 } from "../http2/index.ts";
import { DEFAULT_CALL_SETTINGS } from "../protocol.ts";
import { route } from "./route-part.ts";

const sent = (call: ReturnType<typeof http.get>): string =>
  call.request.message(DEFAULT_CALL_SETTINGS).sent.toString();
const line = (call: ReturnType<typeof http.get>): string => sent(call).split("\r\n")[0] ?? "";

const shop = http.target("http://ada:secret@shop.test:8080/api/", { headers: { "x-run": "7" } });

it("sends the same bytes whichever way a request was described", () => {
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

it("keeps what a literal path without options describes, and nothing that is made in a loop", () => {
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
])("gives %j the meaning that an address has", (path, expected) => {
  expect(line(shop.get(path))).toBe(expected);
});

it("escapes the values of a route, so that none leaves its place", () => {
  expect(line(shop.get(route`/orders/${"a/b?c"}/x`))).toBe("GET /api/orders/a%2Fb%3Fc/x HTTP/1.1");
  expect(line(shop.get(route`/orders/${".."}/x`))).toBe("GET /api/orders/%2E%2E/x HTTP/1.1");
  expect(() => route`/orders/${undefined as never}`).toThrow(/a value is undefined/);
  expect(() => route`orders/${1}`).toThrow(/begins with/);
});

it("names steps by method and route", () => {
  expect(shop.get(route`/orders/${7}`).title).toBe("GET /orders/{}");
  expect(shop.get("/orders?page=1").title).toBe("GET /orders");
  expect(http.get("http://shop.test/x?y=1").title).toBe("GET /x");
});

it("adds headers of `with` to those of the target, and keeps its connections", () => {
  const me = shop.with({ headers: { authorization: "Bearer t" } });
  expect(sent(me.get("/x"))).toContain("x-run: 7\r\nauthorization: Bearer t\r\n");
  const origins = [shop, me].map((one) => one.get("/x").origin().id);
  expect(origins[0]).toBe(origins[1]);
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

it("throws the line to write when a description is awaited", async () => {
  const awaited = (async () => await (shop.get("/orders") as unknown as Promise<unknown>))();
  await expect(awaited).rejects.toThrow(/GET \/orders is only described.*await step\("name", …\)/);
});
