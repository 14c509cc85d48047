import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { runExample } from "../testing/example.ts";
import { answersTo, perform, TestSession } from "../testing/session.ts";
import { Http3Target } from "./target.ts";
import {
  type CaddyServer,
  driverFolder,
  isPresent,
  startCaddy,
  useDriver,
  WHY_ABSENT,
} from "./testing/server.ts";

describe("a server", needs(isPresent, WHY_ABSENT), () => {
  let server: CaddyServer;
  let shop: Http3Target;
  beforeAll(async () => {
    await useDriver();
    server = await startCaddy();
    const hosts = { localhost: `127.0.0.1:${server.port}` };
    shop = new Http3Target(`https://localhost:${server.port}`, { ca: server.cert, hosts });
  });
  afterAll(() => server.stop());

  it("answers over HTTP/3 when its certificate is trusted", async () => {
    const [home, order, missing, wanted] = await answersTo(
      shop.get("/"),
      shop.post("/orders", { body: { item: 7 } }),
      shop.get("/missing"),
      shop.get("/missing", { expect: 404 }),
    );
    expect(home).toMatchObject({ ok: true, protocol: "http3", status: 200, sent: 1 });
    expect(home.value.body.toString()).toBe("HTTP/3.0 GET ");
    expect(home.value.headers["server"]).toBe("Caddy");
    expect(home.bytesIn).toBeGreaterThan(0);
    expect(order.value.body.toString()).toBe('HTTP/3.0 POST {"item":7}');
    expect(order.connectMs).toBe(-1);
    expect(missing).toMatchObject({ errorKind: "status", errorCode: "404", status: 404 });
    expect(wanted.value.status).toBe(404);
  });

  it("is rejected when no trusted authority signed its certificate", async () => {
    const [doubting, trusting] = await answersTo(
      new Http3Target(`https://localhost:${server.port}`).get("/"),
      new Http3Target(`https://localhost:${server.port}`, { insecure: true }).get("/"),
    );
    expect(doubting.errorKind).toBe("tls");
    expect(trusting.error).toBeNull();
  });

  it("answers concurrent requests of a user on one connection", async () => {
    const session = new TestSession();
    await perform(shop.get("/"), session);
    const paths = Array.from({ length: 50 }, (_, at) => `/orders?${at}`);
    const all = await Promise.all(paths.map((path) => perform(shop.get(path), session)));
    expect(all.filter(({ ok }) => !ok)).toEqual([]);
    expect(all.filter(({ connectMs }) => connectMs >= 0)).toEqual([]);
    session.close();
  });

  it("rejects a response longer than the limit", async () => {
    const session = new TestSession({ bodyBytesMax: 100 });
    expect(await perform(shop.get("/long"), session)).toMatchObject({ errorKind: "protocol" });
    expect((await perform(shop.get("/"), session)).ok).toBe(true);
    session.close();
  });

  it("matches the server's own count in a whole run", async () => {
    const before = await server.count("/orders");
    const steps = await runExample("http3.ts", {
      HTTP3_URL: `https://localhost:${server.port}`,
      HTTP3_INSECURE: "1",
      NODE_PATH: `${driverFolder}/node_modules`,
    });
    expect((await server.count("/orders")) - before).toBe(steps.get("order")?.ok);
  });
});

describe("validation", () => {
  const shop = new Http3Target("https://127.0.0.1");
  it.each([
    ["a certificate of the user", () => make({ cert: "x" }), /has no option "cert"/],
    ["no path", () => shop.get("home"), /is not a path/],
    ["two headers in one", () => shop.get("/", { headers: { a: "b\r\nc: d" } }), /cannot be sent/],
  ])("reports at once: %s", (_what, act, text) => {
    expect(act).toThrow(text);
  });
});

function make(options: object): Http3Target {
  return new Http3Target("https://127.0.0.1", options);
}
