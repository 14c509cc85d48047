import { describe, expect, it, onTestFinished } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";
import { runExample } from "../testing/example.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { answersTo } from "../testing/session.ts";
import { EventReader, type SseEvent } from "./events.ts";
import { SseTarget } from "./target.ts";
import { EVENTS, startEvents } from "./testing/server.ts";

function read(text: string, size: number): readonly SseEvent[] {
  const events: SseEvent[] = [];
  const reader = new EventReader((event) => events.push(event));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size));
  return events;
}

describe("a stream", () => {
  const text =
    "\uFEFFdata: ä\r\ndata\r\ndata:  two\r\n\r\n: comment\r\revent: price\rid: 7\rdata:1\r\r" +
    "retry: 5\n\nid: a\0b\ndata: last\n\ndata: never ends";

  it.each([1, 2, 3, 1_000])("is the same in pieces of %i bytes", (size) => {
    expect(read(text, size)).toEqual([
      { event: "message", data: "ä\n\n two", id: "" },
      { event: "price", data: "1", id: "7" },
      { event: "message", data: "last", id: "7" },
    ]);
  });
});

describe("a server", () => {
  it("returns its events, until it ends the stream or enough have arrived", async () => {
    const server = await startEvents();
    onTestFinished(() => server.stop());
    const shop = new SseTarget(`http://127.0.0.1:${server.port}`);
    const body = { text: "hi" };
    const [all, again, some, next] = await answersTo(
      shop.events("/few"),
      shop.events("/few", { body, headers: { "X-Trace": "7" } }),
      shop.events("/many", { take: 2 }),
      shop.events("/few"),
    );
    expect(all).toMatchObject({ ok: true, protocol: "sse", status: 200, sent: 1 });
    expect(all.value).toHaveLength(EVENTS);
    expect(all.value[0]).toEqual({ event: "price", data: '{"cents":1}\né', id: "1" });
    expect(again.connectMs).toBe(-1);
    expect(some.value.map(({ id }) => id)).toEqual(["1", "2"]);
    // The stream continued, so its connection was closed.
    expect(next.error).toBeNull();
    expect(next.connectMs).toBeGreaterThanOrEqual(0);
  });

  it("without such a stream fails the call by its status", async () => {
    const server = await startEvents();
    onTestFinished(() => server.stop());
    const shop = new SseTarget(`http://127.0.0.1:${server.port}`);
    const [missing, next] = await answersTo(shop.events("/nowhere"), shop.events("/few"));
    expect(missing).toMatchObject({ errorKind: "status", errorCode: "404", status: 404 });
    expect(next.connectMs).toBe(-1);
  });

  it("may end a stream by closing, after a complete event", async () => {
    const end = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: x\n\n";
    const answers = [end, `${end}data: half`];
    const server = await listenTcp((socket) =>
      socket.on("data", () => socket.end(answers.shift() ?? "")),
    );
    onTestFinished(() => server.close());
    const shop = new SseTarget(`http://127.0.0.1:${server.port}`);
    const [whole, half] = await answersTo(shop.events("/"), shop.events("/"));
    expect(whole.value.map(({ data }) => data)).toEqual(["x"]);
    expect(half.errorKind).toBe("reset");
  });

  it("is trusted over TLS through the given authority", async () => {
    const tls = makeCertificate({ hosts: ["127.0.0.1"] });
    const server = await startEvents(tls);
    onTestFinished(() => server.stop());
    const url = `https://127.0.0.1:${server.port}`;
    const [trusting, doubting] = await answersTo(
      new SseTarget(url, { ca: tls.cert }).events("/few"),
      new SseTarget(url).events("/few"),
    );
    expect(trusting.error).toBeNull();
    expect(doubting.errorKind).toBe("tls");
  });

  it("matches the server's own count in a whole run", async () => {
    const server = await startEvents();
    onTestFinished(() => server.stop());
    const steps = await runExample("sse.ts", { SSE_URL: `http://127.0.0.1:${server.port}` });
    const [few, many] = [steps.get("few"), steps.get("many")];
    expect(await server.served()).toBe((few?.sent ?? 0) + (many?.sent ?? 0));
  });
});

describe("validation", () => {
  const shop = new SseTarget("http://127.0.0.1");
  it.each([
    ["no path", () => shop.events("few"), /is not a path/],
    ["a header of two lines", () => shop.events("/", { headers: { a: "b\r\nc: d" } }), /header/],
    ["no number", () => shop.events("/", { take: -1 }), /take is/],
    ["no method", () => shop.events("/", { method: "GET /" }), /is not a method/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
