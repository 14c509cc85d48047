import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import type { CountingServer } from "../testing/contract.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { perform } from "../testing/session.ts";
import { memcached } from "./index.ts";
import { MEMCACHED_SERVER, memcachedProgram, startMemcached } from "./testing/server.ts";

describe("a server", needs(memcachedProgram !== null, absent(MEMCACHED_SERVER)), () => {
  let server: CountingServer;
  beforeAll(async () => {
    server = await startMemcached();
  });
  afterAll(() => server.stop());

  it("stores, counts and deletes", async () => {
    const cache = memcached.target(`memcached://127.0.0.1:${server.port}`);
    expect((await perform(cache.set("n", "5", { ttl: "1m" }))).value).toBe(true);
    expect((await perform(cache.incr("n", 2))).value).toBe(7);
    expect((await perform(cache.get("n"))).value).toBe("7");
    expect((await perform(cache.set("long", "x".repeat(200_000)))).value).toBe(true);
    expect((await perform(cache.get("long"))).value).toHaveLength(200_000);
    expect((await perform(cache.delete("n"))).value).toBe(true);
    expect((await perform(cache.get("n"))).value).toBeNull();
    expect((await perform(cache.incr("n"))).value).toBeNull();
    const large = await perform(cache.set("large", Buffer.alloc(2_000_000)));
    expect(large).toMatchObject({ errorKind: "application", errorCode: "SERVER_ERROR" });
    expect(() => cache.get("two words")).toThrow("not a key");
  });

  it("matches the server's own count in a whole run of the example", async () => {
    const before = await server.served();
    const url = `memcached://127.0.0.1:${server.port}`;
    const steps = await runExample("memcached.ts", { MEMCACHED_URL: url });
    expect((await server.served()) - before).toBe(steps.get("cached")?.sent);
  });
});
