/** HTTP, Redis and PostgreSQL in one flow: the summary of each step matches the count of its server. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { NO_POSTGRES, TestPostgres } from "../../../test/processes/queue/server.ts";
import { type PostgresServer, startPostgres } from "../postgres/testing/server.ts";
import {
  REDIS_SERVER,
  type RedisServer,
  redisProgram,
  startRedis,
} from "../redis/testing/server.ts";
import type { CountingServer } from "./contract.ts";
import { startCounting } from "./counting-server.ts";
import { runExample } from "./example.ts";
import { absent } from "./real-server.ts";

const isThere = redisProgram !== null && TestPostgres.available();
const reason = redisProgram === null ? absent(REDIS_SERVER) : NO_POSTGRES;

describe("several protocols in one flow", needs(isThere, reason), () => {
  let shop: CountingServer;
  let cache: RedisServer;
  let database: PostgresServer;

  beforeAll(async () => {
    [shop, cache, database] = await Promise.all([startCounting(), startRedis(), startPostgres()]);
  });

  afterAll(() => Promise.all([shop?.stop(), cache?.stop(), database?.stop()]));

  it("match the counts of their servers", async () => {
    const steps = await runExample("several.ts", {
      SHOP_URL: `http://127.0.0.1:${shop.port}`,
      REDIS_URL: `redis://127.0.0.1:${cache.port}`,
      DATABASE_URL: database.url,
    });
    const [row] = await database.ask("select count(*) n from hyperscale_sales");
    expect(await shop.served()).toBe(steps.get("page")?.ok);
    expect(await cache.count("get")).toBe(steps.get("price")?.ok);
    expect(Number(row?.["n"])).toBe(steps.get("sale")?.ok);
  });
});
