import { ServerCredentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";
import { freePort } from "../testing/real-server.ts";
import { perform, runner, TestSession } from "../testing/session.ts";
import { type GrpcCall, type GrpcOptions, type GrpcResponse, GrpcTarget } from "./target.ts";
import { SHOP_PROTO, type ShopServer, startShop } from "./testing/server.ts";

let server: ShopServer;
beforeAll(async () => {
  server = await startShop();
});
afterAll(() => server.stop());

const target = (options: GrpcOptions = {}): GrpcTarget =>
  new GrpcTarget(`grpc://127.0.0.1:${server.port}`, { proto: SHOP_PROTO, ...options });

async function answer<Value>(
  call: GrpcCall<Value>,
  insecure = false,
): Promise<GrpcResponse<Value>> {
  const session = new TestSession({ insecure });
  const result = await perform(call, session);
  session.close();
  return result;
}

describe("a call", () => {
  it("returns messages as plain objects: 64-bit numbers as text, enums by name", async () => {
    const response = await answer(target().unary("shop.Catalog/GetItem", { id: 7 }));
    expect(response).toMatchObject({ ok: true, protocol: "grpc", status: 0 });
    expect(response.value).toEqual({ id: "7", name: "item 7", unit: "GRAM", prices: [0.5, 2] });
    expect(response.loginMs).toBeGreaterThanOrEqual(0);
  });

  it("reports a refused call with the status name and the server's message", async () => {
    const response = await answer(target().unary("shop.Catalog/GetItem", { id: 404 }));
    expect(response).toMatchObject({ errorKind: "application", errorCode: "NOT_FOUND", status: 5 });
    expect(response.error).toBe("NOT_FOUND: no item 404 – really");
  });

  it("streams responses, requests, and both", async () => {
    const list = await answer(target().serverStream("shop.Catalog/List", { count: 1_000 }));
    expect(list.value).toHaveLength(1_000);
    expect(list.value.at(-1)).toMatchObject({ id: "1000" });
    const items = Array.from({ length: 5_000 }, (_, id) => ({ id, name: "x".repeat(100) }));
    const put = await answer(target().clientStream("shop.Catalog/Put", items));
    expect(put.value).toEqual({ count: 5_000 });
    const requests = Array.from({ length: 300 }, (_, id) => ({ id }));
    const quote = await answer(target().bidi("shop.Catalog/Quote", requests));
    expect(quote.value.map(({ id }) => Number(id))).toEqual(requests.map(({ id }) => id));
  });

  it("accepts the values of responses: 64-bit numbers as text, enums by name", async () => {
    const shop = target();
    const item = await answer(shop.unary("shop.Catalog/GetItem", { id: "9007199254740993" }));
    expect(item.value).toMatchObject({ id: "9007199254740993", unit: "GRAM" });
    const put = await answer(shop.clientStream("shop.Catalog/Put", [item.value, { id: 7n }]));
    expect(put).toMatchObject({ ok: true, value: { count: 2 } });
    for (const [wrong, message] of [
      [{ id: "seven" }, "Item.id: integer|Long expected"],
      [{ id: "9223372036854775808" }, "Item.id: integer|Long expected"],
      [{ unit: "POUND" }, "Item.unit: enum value expected"],
    ] as const)
      expect(() => shop.clientStream("shop.Catalog/Put", [wrong])).toThrow(message);
  });

  it("merges metadata of the target with that of the call, which wins", async () => {
    const shop = target({ metadata: { "x-run": "7", "x-user": "target" } });
    const call = shop.unary("shop.Catalog/GetItem", { id: 1 }, { metadata: { "x-user": "call" } });
    expect((await answer(call)).ok).toBe(true);
    expect(server.metadata().get("x-run")).toEqual(["7"]);
    expect(server.metadata().get("x-user")).toEqual(["call"]);
  });

  it("uses TLS with ALPN", async () => {
    const { cert, key } = makeCertificate();
    const pair = { private_key: Buffer.from(key), cert_chain: Buffer.from(cert) };
    const secure = await startShop(ServerCredentials.createSsl(null, [pair]));
    onTestFinished(() => secure.stop());
    const shop = new GrpcTarget(`grpcs://127.0.0.1:${secure.port}`, { proto: SHOP_PROTO });
    const response = await answer(shop.unary("shop.Catalog/GetItem", { id: 3 }), true);
    expect(response).toMatchObject({ ok: true });
    expect(response.tlsMs).toBeGreaterThanOrEqual(0);
  });

  it("shares a connection with other calls of its user", async () => {
    const session = new TestSession();
    const call = target().unary("shop.Catalog/GetItem", { id: 7 });
    const runs = await Promise.all(Array.from({ length: 20 }, () => runner(call, session)));
    await runs[0]?.();
    const ended = await Promise.all(runs.map((run) => run()));
    expect(ended.map(({ record }) => [record.errorKind, record.connectMs])).toEqual(
      Array.from({ length: 20 }, () => [null, -1]),
    );
    session.close();
  });
});

describe("validation", () => {
  const prepared = async (call: GrpcCall<unknown>): Promise<void> => {
    await call.prepare();
  };

  it("reports an unknown method name before the run", async () => {
    await expect(prepared(target().unary("shop.Catalog/GetItm", {}))).rejects.toThrow(
      'no .proto file has a method "shop.Catalog/GetItm"; did you mean "shop.Catalog/GetItem"?',
    );
  });

  it("reports the wrong kind of call and names the right one", async () => {
    await expect(prepared(target().unary("shop.Catalog/List", {}))).rejects.toThrow(
      "shop.Catalog/List is called by serverStream(…), not unary(…)",
    );
  });

  it("reports the wrong field of a message", async () => {
    const call = target().clientStream("shop.Catalog/Put", [{ name: 7 }]);
    await expect(prepared(call)).rejects.toThrow("shop.Catalog/Put: Item.name: string expected");
  });

  it("reports a missing .proto file", async () => {
    const shop = target({ proto: "nowhere.proto" });
    await expect(prepared(shop.unary("shop.Catalog/GetItem", {}))).rejects.toThrow(
      /there is no file .*nowhere\.proto/,
    );
  });

  it.each([{ "grpc-timeout": "1S" }, { "x y": "1" }, { "x-a": "\n" }])(
    "rejects metadata %j at once",
    (metadata) => {
      expect(() => target().unary("shop.Catalog/GetItem", {}, { metadata })).toThrow(/metadata/);
    },
  );
});

it("treats a server without a health service as alive", async () => {
  const response = await answer(target().ping());
  expect(response).toMatchObject({ errorKind: "application", errorCode: "UNIMPLEMENTED" });
});

describe("reflection", () => {
  it.each([[["v1"]], [["v1alpha"]], [["v1", "v1alpha"]]] as const)(
    "of %s describes the services of the server",
    async (versions) => {
      const shop = await startShop(undefined, versions);
      onTestFinished(() => shop.stop());
      const reflected = new GrpcTarget(`grpc://127.0.0.1:${shop.port}`, { reflection: true });
      const item = await answer(reflected.unary("shop.Catalog/GetItem", { id: 7 }));
      expect(item.value).toEqual({ id: "7", name: "item 7", unit: "GRAM", prices: [0.5, 2] });
      const list = await answer(reflected.serverStream("shop.Catalog/List", { count: 3 }));
      expect(list.value).toHaveLength(3);
      expect(() => reflected.unary("shop.Catalog/GetItme", {})).toThrow(
        'the server does not have a method "shop.Catalog/GetItme"',
      );
      expect(() => reflected.unary("shop.Catalog/List", {})).toThrow("serverStream");
    },
  );

  it("reports a missing reflection service or an unreachable server before the run", async () => {
    const reflecting = new GrpcTarget(`grpc://127.0.0.1:${server.port}`, { reflection: true });
    const call = reflecting.unary("shop.Catalog/GetItem", { id: 7 });
    await expect(call.prepare()).rejects.toThrow(/reflection failed.*UNIMPLEMENTED/);
    const unreachable = new GrpcTarget(`grpc://127.0.0.1:${await freePort()}`, {
      reflection: true,
    });
    await expect(unreachable.unary("a.B/C", {}).prepare()).rejects.toThrow("ECONNREFUSED");
    expect(() => target({ reflection: true })).toThrow("not both");
  });
});
