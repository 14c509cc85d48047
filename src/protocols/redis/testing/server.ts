/** A real Redis server for the tests. */

import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { runner, TestSession } from "../../testing/session.ts";
import { RedisTarget } from "../target.ts";

export const REDIS_SERVER: ServerPackage = { program: "redis-server", package: "redis-server" };
export const redisProgram = findProgram(REDIS_SERVER);

export interface RedisServer extends CountingServer {
  /** Calls of a command, by the server's own count. */
  count(command: string): Promise<number>;
}

/** `options` of redis.conf, as on its command line. */
export async function startRedis(...options: readonly string[]): Promise<RedisServer> {
  if (redisProgram === null) throw new Error("there is no redis-server");
  const server = await startServer({
    program: redisProgram,
    args: (port, folder) => [
      ...["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder],
      ...["--save", "", "--appendonly", "no", "--maxclients", "4000", ...options],
    ],
  });
  const password = options[options.indexOf("--requirepass") + 1];
  const target = new RedisTarget(
    `redis://127.0.0.1:${server.port}`,
    options.includes("--requirepass") && password !== undefined ? { password } : {},
  );
  const session = new TestSession();
  const count = async (command: string): Promise<number> => {
    const { result } = await (await runner(target.command("INFO", "commandstats"), session))();
    const text = result instanceof Object && "value" in result ? String(result.value) : "";
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
  };
  return {
    port: server.port,
    count,
    served: () => count("get"),
    stop: async () => {
      session.close();
      await server.stop();
    },
  };
}
