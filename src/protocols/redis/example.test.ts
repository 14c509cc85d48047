import { expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { REDIS_SERVER, redisProgram, startRedis } from "./testing/server.ts";

it(
  "matches the server's own count in a whole run",
  needs(redisProgram !== null, absent(REDIS_SERVER)),
  async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const steps = await runExample("redis.ts", { REDIS_URL: `redis://127.0.0.1:${server.port}` });
    const [cached, store] = [steps.get("cached"), steps.get("store")];
    expect(await server.count("get")).toBe(cached?.sent);
    expect(await server.count("set")).toBe(store?.requests);
    expect(store?.sent).toBe(2 * (store?.requests ?? 0));
    expect(cached?.requests).toBe(cached?.sent);
  },
);
