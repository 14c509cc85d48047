/** Tests specific to Redis: values, logins, pipelines, TLS; and its use in flows and workflows. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { flow, once } from "../../index.ts";
import { absent, freePort } from "../testing/real-server.ts";
import { runner, TestSession } from "../testing/session.ts";
import { type RedisCall, type RedisOptions, type RedisResponse, redis } from "./index.ts";
import { REDIS_SERVER, type RedisServer, redisProgram, startRedis } from "./testing/server.ts";

async function perform<Value>(call: RedisCall<Value>): Promise<RedisResponse<Value>> {
  const session = new TestSession();
  const { result } = await (await runner(call, session))();
  session.close();
  return result as RedisResponse<Value>;
}

describe("a target", () => {
  it.each<[string, RedisOptions, RegExp]>([
    ["http://127.0.0.1", {}, /redis:\/\/host:port/],
    ["redis://", {}, /host/],
    ["redis://h/seven", {}, /not a database number/],
    ["redis://h", { resp: 4 as 3 }, /resp is 2 or 3/],
    ["redis://h", { username: "ada" }, /needs a password/],
    ["redis://h", { passwort: "x" } as RedisOptions, /did you mean "password"/],
    ["redis://h", { timeout: "soon" }, /timeout: "soon" is not a duration/],
    ["mysql://ada:hidden@h", {}, /not "mysql:\/\/\*\*\*@h"$/],
  ])("rejects %s with %j before the run", (address, options, message) => {
    expect(() => redis.target(address, options)).toThrow(message);
  });

  it("describes calls; awaiting a description shows the line to write", async () => {
    const call = redis.target("redis://h").get("k");
    await expect((async () => call as unknown)()).rejects.toThrow('await step("name"');
    expect(() => redis.target("redis://h").set("k", null as unknown as string)).toThrow("argument");
    expect(() => redis.target("redis://h").pipeline()).toThrow("1 to");
  });

  it("types its values", () => {
    const cache = redis.target("redis://h");
    const both = cache.pipeline(cache.get("a"), cache.incr("b"));
    expectTypeOf<RedisResponse<string | null>["value"]>().toEqualTypeOf<string | null>();
    expectTypeOf(both).toEqualTypeOf<RedisCall<readonly [string | null, number]>>();
  });

  it("accepts canned answers", async () => {
    const cache = redis.target("redis://h");
    const shop = flow("shop", async ({ check, step }) => {
      const price = await step("price", cache.get("p"));
      check("known", () => price.value === "12");
    });
    const { checks, outcome } = await once(shop, { answers: { price: { json: "12" } } });
    expect(outcome).toBe("completed");
    expect(checks).toEqual([{ name: "known", passed: true }]);
  });
});

describe("a server", needs(redisProgram !== null, absent(REDIS_SERVER)), () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  const at = (options?: RedisOptions) => redis.target(`redis://127.0.0.1:${server.port}`, options);

  it.each([2, 3] as const)("speaks RESP%i: texts, bytes, numbers, lists, maps", async (resp) => {
    const cache = at({ resp });
    expect((await perform(cache.set("text", "grüße", { ttl: "1m" }))).value).toBe("OK");
    expect((await perform(cache.get("text"))).value).toBe("grüße");
    expect((await perform(cache.set("text", "x", { when: "absent" }))).value).toBeNull();
    const bytes = Buffer.of(0, 13, 10, 255);
    await perform(cache.set("bytes", bytes));
    expect((await perform(cache.getBytes("bytes"))).value).toEqual(bytes);
    await perform(cache.del("n"));
    expect((await perform(cache.incr("n", 5))).value).toBe(5);
    await perform(cache.command("DEL", "hash"));
    await perform(cache.command("HSET", "hash", "a", 1, "b", 2));
    const all = (await perform(cache.command("HGETALL", "hash"))).value;
    expect(all).toEqual(
      resp === 3
        ? new Map([
            ["a", "1"],
            ["b", "2"],
          ])
        : ["a", "1", "b", "2"],
    );
    expect((await perform(cache.publish("news", "hello"))).value).toBe(0);
    expect((await perform(cache.get("none"))).value).toBeNull();
  });

  it("accepts a value of a megabyte, and a list of many", async () => {
    const cache = at();
    const long = Buffer.alloc(1_000_000, "abcdefg");
    await perform(cache.set("long", long));
    expect((await perform(cache.getBytes("long"))).value?.equals(long)).toBe(true);
    await perform(cache.command("DEL", "list"));
    await perform(cache.command("RPUSH", "list", ...Array.from({ length: 5_000 }, (_, i) => i)));
    const list = (await perform(cache.command("LRANGE", "list", 0, -1))).value;
    expect(list).toEqual(Array.from({ length: 5_000 }, (_, i) => `${i}`));
  });

  it("performs a pipeline as one call, and counts its commands", async () => {
    const cache = at();
    const before = await server.count("incr");
    const result = await perform(
      cache.pipeline(cache.set("a", "1"), cache.incr("a"), cache.get("a"), cache.get("zz")),
    );
    expect(result.value).toEqual(["OK", 2, "2", null]);
    expect(result.sent).toBe(4);
    expect((await server.count("incr")) - before).toBe(1);
    const failed = await perform(cache.pipeline(cache.set("t", "x"), cache.incr("t")));
    expect(failed).toMatchObject({ errorKind: "application", errorCode: "ERR" });
    expect(() => failed.value).toThrow("not an integer");
  });

  it("reports errors by the server's own names", async () => {
    const cache = at();
    await perform(cache.set("text", "x"));
    const result = await perform(cache.command("LPUSH", "text", "x"));
    expect(result).toMatchObject({ ok: false, errorKind: "application", errorCode: "WRONGTYPE" });
    expect(result.error).toMatch(/^WRONGTYPE Operation against/);
  });

  it("selects a database by path or option", async () => {
    await perform(redis.target(`redis://127.0.0.1:${server.port}/3`).set("only", "three"));
    expect((await perform(at({ database: 3 }).get("only"))).value).toBe("three");
    expect((await perform(at().get("only"))).value).toBeNull();
    const far = await perform(at({ database: 999 }).get("only"));
    expect(far).toMatchObject({ errorKind: "application", errorCode: "ERR" });
  });

  it("is called by flows, in parallel over further connections, and by functions", async () => {
    const cache = at();
    const pricing = flow("pricing", async ({ step, check }) => {
      await step("store", cache.set("price", "12"), { required: true });
      const [price, misses] = await Promise.all([
        step("price", cache.get("price")),
        step(cache.incr("misses")),
      ]);
      check("stored", () => price.value === "12" && misses.value > 0);
      const broken = await step("broken", cache.command("LPUSH", "price", "x"));
      check("a failure is a value", () => broken.errorCode === "WRONGTYPE");
      return void broken.value;
    });
    const { calls, checks, endedBy, outcome } = await once(pricing);
    expect(checks.every(({ passed }) => passed)).toBe(true);
    const results = calls.map(({ name, result }) => [name, result.protocol, result.ok]);
    expect([results[0], results[3]]).toEqual([
      ["store", "redis", true],
      ["broken", "redis", false],
    ]);
    // Over two connections: the server answers the later one first when it reads both at once.
    expect(results.slice(1, 3).sort()).toEqual([
      ["INCR", "redis", true],
      ["price", "redis", true],
    ]);
    expect([outcome, endedBy]).toEqual(["ended", "broken"]);
  });
});

const ADA = ["ada", "on", ">pass", "~*", "+@all"];

describe("logins", needs(redisProgram !== null, absent(REDIS_SERVER)), () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis("--requirepass", "se:cret", "--user", ...ADA);
  });
  afterAll(() => server.stop());

  it.each<[string, RedisOptions]>([
    ["redis://:se%3Acret@127.0.0.1", {}],
    ["redis://127.0.0.1", { password: "se:cret" }],
    ["redis://ada:pass@127.0.0.1", {}],
    ["redis://127.0.0.1", { username: "ada", password: "pass", resp: 3 }],
  ])("%s %j succeeds and is measured separately", async (address, options) => {
    const result = await perform(redis.target(`${address}:${server.port}`, options).get("k"));
    expect(result).toMatchObject({ ok: true, value: null });
    expect(result.loginMs).toBeGreaterThan(0);
    expect(result.connectMs).toBeGreaterThanOrEqual(result.loginMs);
  });

  it.each<[RedisOptions, string]>([
    [{}, "NOAUTH"],
    [{ password: "wrong" }, "WRONGPASS"],
    [{ password: "wrong", resp: 3 }, "WRONGPASS"],
  ])("%j is refused with %s", async (options, errorCode) => {
    const result = await perform(
      redis.target(`redis://127.0.0.1:${server.port}`, options).get("k"),
    );
    expect(result).toMatchObject({ ok: false, errorKind: "application", errorCode });
  });
});

describe("over TLS", needs(redisProgram !== null, absent(REDIS_SERVER)), () => {
  const { cert, key } = makeCertificate();
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-redis-"));
  let server: RedisServer;
  let tlsPort = 0;
  beforeAll(async () => {
    writeFileSync(join(folder, "cert.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
    tlsPort = await freePort();
    server = await startRedis(
      ...["--tls-port", `${tlsPort}`, "--tls-auth-clients", "no"],
      ...["--tls-cert-file", join(folder, "cert.pem"), "--tls-key-file", join(folder, "key.pem")],
    );
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it("is measured separately, and trusts only the given authority", async () => {
    const trusting = await perform(
      redis.target(`rediss://localhost:${tlsPort}`, { ca: cert }).ping(),
    );
    expect(trusting).toMatchObject({ ok: true, value: "PONG" });
    expect(trusting.tlsMs).toBeGreaterThan(0);
    const careful = await perform(redis.target(`rediss://localhost:${tlsPort}`).ping());
    expect(careful).toMatchObject({ ok: false, errorKind: "tls" });
  });
});
