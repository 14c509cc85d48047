/** W3C trace headers as servers receive them: which requests carry one, and which of them belong together. */

import nodeHttp, { type IncomingHttpHeaders } from "node:http";
import nodeHttp2 from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { grpc } from "../protocols/grpc/index.ts";
import { SHOP_PROTO, type ShopServer, startShop } from "../protocols/grpc/testing/server.ts";
import { http } from "../protocols/http1/index.ts";
import { http2 } from "../protocols/http2/index.ts";
import { sse } from "../protocols/sse/index.ts";
import { websocket, ws } from "../protocols/websocket/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { flow } from "../workflow/flow.ts";
import type { CommonOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";
import { CallSamples } from "./call-samples.ts";
import { once } from "./once.ts";

/** A request as received by its server. */
interface Seen {
  readonly path: string;
  readonly trace: string | undefined;
  readonly cookie: string | undefined;
}

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/;
const seen: Seen[] = [];
let [url, http2Url, socketUrl] = ["", "", ""];
let shop: ShopServer;
const closings: (() => void)[] = [];

function record(path: string, headers: IncomingHttpHeaders): void {
  seen.push({ path, trace: headers["traceparent"] as string | undefined, cookie: headers.cookie });
}

const serve: nodeHttp.RequestListener = (request, response) => {
  const path = request.url ?? "";
  record(path, request.headers);
  request.resume().on("end", () => {
    if (path === "/old") response.writeHead(302, { location: "/new" }).end();
    else if (path === "/login") response.writeHead(200, { "set-cookie": "sid=7" }).end();
    else if (path === "/events")
      response.writeHead(200, { "content-type": "text/event-stream" }).end("data: 1\n\n");
    else response.end("{}");
  });
};

beforeAll(async () => {
  const plain = nodeHttp.createServer(serve).listen(0, "127.0.0.1");
  const multiplexed = nodeHttp2.createServer().listen(0, "127.0.0.1");
  multiplexed.on("stream", (stream, headers) => {
    record(String(headers[":path"]), headers as IncomingHttpHeaders);
    stream.respond({ ":status": 200 });
    stream.end("{}");
  });
  const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  sockets.on("connection", (socket, request) => {
    record(`ws ${request.url}`, request.headers);
    socket.on("message", (data) => socket.send(data));
  });
  shop = await startShop();
  const port = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  await Promise.all(
    [plain, multiplexed, sockets].map((server) =>
      server.address() === null
        ? new Promise((resolve) => server.once("listening", resolve))
        : Promise.resolve(),
    ),
  );
  url = `http://127.0.0.1:${port(plain)}`;
  http2Url = `http://127.0.0.1:${port(multiplexed)}`;
  socketUrl = `ws://127.0.0.1:${port(sockets)}`;
  closings.push(
    () => plain.closeAllConnections(),
    () => plain.close(),
    () => multiplexed.close(),
    () => sockets.close(),
  );
});
afterAll(async () => {
  await shop.stop();
  for (const close of closings) close();
});
beforeEach(() => {
  seen.length = 0;
});

/** Trace and span of each request that carried them. */
function ids(path: string): { readonly trace: string; readonly span: string }[] {
  return seen
    .filter((request) => request.path === path)
    .map((request) => {
      const [, trace = "", span = ""] = FORM.exec(request.trace ?? "") ?? [];
      return { trace, span };
    });
}

/** Created after the first run was prepared, so it is prepared here. */
async function itemsOf(metadata: Record<string, string> = {}) {
  const target = grpc.target(`grpc://127.0.0.1:${shop.port}`, { proto: SHOP_PROTO, metadata });
  await target.ping().prepare();
  return target;
}

const distinct = (texts: readonly string[]): number => new Set(texts).size;
const ONE = { vus: 1, iterations: 1 } as const;

describe("traceparent", () => {
  it("is not sent by default", async () => {
    const plain = workflow("w", ONE).step("home", http.get(`${url}/`));
    await InProcessRun.whole(plain);
    expect(seen.map(({ trace }) => trace)).toEqual([undefined]);
  });

  for (const [model, load] of [
    ["closed", { vus: 3, iterationsPerVu: 4 }],
    ["open", { rate: 40, duration: "300ms", maxVus: 4 }],
  ] as const)
    it(`has a trace for each iteration and a span for each call (layers, ${model})`, async () => {
      const layers = workflow("w", { ...load, traceparent: true })
        .step("a", http.get(`${url}/a`))
        .step("b", { after: ["a"] }, http.get(`${url}/b`))
        .step("c", { after: ["a"] }, ({ http: client }) =>
          client.post(`${url}/c`, { json: { x: 1 } }),
        );
      const run = await InProcessRun.whole(layers, { cores: 2 });
      const [a, b, c] = [ids("/a"), ids("/b"), ids("/c")];
      expect(a.length).toBeGreaterThan(0);
      expect(distinct(a.map(({ trace }) => trace))).toBe(a.length);
      const traces = new Set(a.map(({ trace }) => trace));
      for (const { trace } of [...b, ...c]) expect(traces).toContain(trace);
      expect(distinct([...a, ...b, ...c].map(({ span }) => span))).toBe(seen.length);
      expect(run.step("w", "a").ok).toBe(a.length);
    });

  it("is shared by all protocols of a flow", async () => {
    const items = await itemsOf();
    const news = sse.target(url);
    const talk = ws.target(`${socketUrl}/talk`);
    const whole = flow("f", { vus: 1, iterations: 3, traceparent: true }, async ({ step }) => {
      await step("one", http.get(`${url}/one`));
      await step("two", http2.get(`${http2Url}/two`));
      await step("news", news.events("/events"));
      await step("item", items.unary("shop.Catalog/GetItem", { id: 1 }));
      const [named] = shop.metadata().get("traceparent");
      seen.push({ path: "grpc", trace: String(named), cookie: undefined });
      const socket = await step("talk", talk.connect());
      await step("say", socket.request("hello"));
    });
    const run = await InProcessRun.whole(whole);
    expect(run.step("f", "say").ok).toBe(3);
    const paths = ["/one", "/two", "/events", "grpc", "ws /talk"];
    for (let at = 0; at < 3; at++) {
      const calls = paths.map((path) => ids(path)[at]);
      expect(distinct(calls.map((call) => call?.trace ?? "none"))).toBe(1);
      expect(distinct(calls.map((call) => call?.span ?? "none"))).toBe(paths.length);
      expect(calls[0]?.trace).toMatch(/^[0-9a-f]{32}$/);
    }
    expect(distinct(ids("/one").map(({ trace }) => trace))).toBe(3);
  });

  it("keeps the span of a redirected call", async () => {
    for (const get of [http.get(`${url}/old`), http.get(`${url}/old`, { redirects: 1 })]) {
      const options: CommonOptions = { traceparent: true, redirects: 1 };
      await InProcessRun.whole(workflow("w", { ...ONE, ...options }).step("moved", get));
    }
    const [old, moved] = [ids("/old"), ids("/new")];
    expect(moved).toEqual(old);
    expect(distinct(old.map(({ span }) => span))).toBe(2);
  });

  it("goes beside cookies, shared connections and bodies", async () => {
    const options = {
      vus: 2,
      iterationsPerVu: 2,
      traceparent: true,
      connections: "shared",
    } as const;
    await InProcessRun.whole(
      workflow("w", options)
        .step("login", http.get(`${url}/login`))
        .step("pay", { after: ["login"] }, http.post(`${url}/pay`, { json: { cents: 100 } })),
    );
    const paid = seen.filter(({ path }) => path === "/pay");
    expect(paid.map(({ cookie }) => cookie)).toEqual(Array(4).fill("sid=7"));
    expect(distinct(ids("/pay").map(({ span }) => span))).toBe(4);
  });

  it("of prepared WebSocket exchanges is that of the upgrade, once per connection", async () => {
    const options = { vus: 2, iterationsPerVu: 3, traceparent: true };
    await InProcessRun.whole(
      workflow("w", options).step("echo", websocket.exchange(`${socketUrl}/echo`, "hi")),
    );
    const upgrades = ids("ws /echo");
    expect(upgrades).toHaveLength(2);
    expect(distinct(upgrades.map(({ trace }) => trace))).toBe(2);
  });

  it("keeps a header of the author", async () => {
    const own = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`;
    const headers = { TraceParent: own };
    const items = await itemsOf({ traceparent: own });
    const written = flow("f", { ...ONE, traceparent: true }, async ({ step }) => {
      await step("one", http.get(`${url}/own`, { headers }));
      await step("two", http2.get(`${http2Url}/own`, { headers }));
      await step("news", sse.target(url, { headers }).events("/events"));
      await step("item", items.unary("shop.Catalog/GetItem", { id: 1 }));
      await step("talk", ws.target(`${socketUrl}/own`).connect({ headers }));
    });
    await InProcessRun.whole(written);
    expect(seen.map(({ trace }) => trace)).toEqual([own, own, own, own]);
    expect(shop.metadata().get("traceparent")).toEqual([own]);
  });

  it("is carried only by the sampled share of iterations, and by all of their calls", async () => {
    const both = workflow("w", { vus: 4, iterations: 400, traceparent: 0.5 })
      .step("a", http.get(`${url}/a`))
      .step("b", { after: ["a"] }, http.get(`${url}/b`));
    await InProcessRun.whole(both);
    const carried = (path: string): string[] =>
      ids(path).flatMap(({ trace }) => (trace === "" ? [] : [trace]));
    const [a, b] = [carried("/a"), carried("/b")];
    // 400 coin flips: outside of these bounds once in 10^22 runs.
    expect(a.length).toBeGreaterThan(100);
    expect(a.length).toBeLessThan(300);
    expect(b.sort()).toEqual(a.sort());
  });

  it("is turned on and off by the command line", async () => {
    const written = workflow("w", { ...ONE, traceparent: true }).step("a", http.get(`${url}/a`));
    await InProcessRun.whole(written, { overrides: { tracedShare: 0 } });
    const silent = workflow("w", ONE).step("a", http.get(`${url}/a`));
    await InProcessRun.whole(silent, { overrides: { tracedShare: 1 } });
    expect(seen.map(({ trace }) => trace !== undefined)).toEqual([false, true]);
  });

  it("is not sent outside iterations, and is sent in a single trial iteration", async () => {
    const tried = flow(
      "f",
      {
        ...{ ...ONE, traceparent: true },
        userSetup: async ({ step }) => step("before", http.get(`${url}/before`)),
      },
      async ({ step }) => void (await step("one", http.get(`${url}/one`))),
    );
    const { calls } = await once(tried);
    expect(seen.map(({ path, trace }) => [path, trace !== undefined])).toEqual([
      ["/before", false],
      ["/one", true],
    ]);
    expect(calls.at(-1)?.result.traceparent).toBe(seen.at(-1)?.trace);
  });

  it("leads from a sampled call to its trace", () => {
    const samples = new CallSamples(1, "w", () => "home");
    const times = { startedAt: 0, firstByteAt: 1, endedAt: 2, connectMs: -1, tlsMs: -1 };
    const call = { errorKind: null, status: 200, ...times, bytesIn: 1, bytesOut: 1 };
    const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`;
    samples.offer(0, { ...call, traceparent }, 0);
    samples.offer(0, call, 0);
    const [traced, plain] = (samples.take()?.text ?? "")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(traced).toMatchObject({ trace_id: "ab".repeat(16), span_id: "cd".repeat(8) });
    expect(plain).not.toHaveProperty("trace_id");
  });

  it("is a share from 0 to 1, or true", () => {
    for (const traceparent of [2, -0.1, Number.NaN, "all"])
      expect(() => workflow("w", { ...ONE, traceparent: traceparent as number })).toThrow(
        "must be true, or a share from 0 to 1",
      );
  });
});
