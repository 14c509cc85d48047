/** A real memcached for the tests. */

import net from "node:net";
import { userInfo } from "node:os";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";

export const MEMCACHED_SERVER: ServerPackage = { program: "memcached", package: "memcached" };
export const memcachedProgram = findProgram(MEMCACHED_SERVER);

export async function startMemcached(): Promise<CountingServer> {
  if (memcachedProgram === null) throw new Error("there is no memcached");
  const server = await startServer({
    program: memcachedProgram,
    args: (port) => ["-l", "127.0.0.1", "-p", `${port}`, "-c", "4000", "-u", userInfo().username],
  });
  /** Queried independently of the tested code. */
  const served = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const socket = net.connect(server.port, "127.0.0.1", () => socket.write("stats\r\n"));
      let text = "";
      socket.on("error", reject);
      socket.on("data", (bytes) => {
        text += bytes.toString();
        if (!text.endsWith("END\r\n")) return;
        socket.destroy();
        resolve(Number(/STAT cmd_get (\d+)/.exec(text)?.[1]));
      });
    });
  return { port: server.port, served, stop: server.stop };
}
