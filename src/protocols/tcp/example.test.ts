import { expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import { REDIS_SERVER, redisProgram, startRedis } from "../redis/testing/server.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";

it(
  "matches the server's own count in a whole run",
  needs(redisProgram !== null, absent(REDIS_SERVER)),
  async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const steps = await runExample("tcp.ts", { TCP_URL: `tcp://127.0.0.1:${server.port}` });
    expect(await server.count("ping")).toBe(steps.get("ping")?.sent);
  },
);
