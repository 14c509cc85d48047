/** A real NATS server for the tests. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CountingServer } from "../../testing/contract.ts";
import {
  findProgram,
  freePort,
  type ServerPackage,
  startServer,
} from "../../testing/real-server.ts";

export const NATS_SERVER: ServerPackage = { program: "nats-server", package: "nats-server" };
export const natsProgram = findProgram(NATS_SERVER);

/** `configuration` is appended to that of a plain server. */
export async function startNats(configuration = ""): Promise<CountingServer> {
  if (natsProgram === null) throw new Error("there is no nats-server");
  const monitorPort = await freePort();
  const server = await startServer({
    program: natsProgram,
    args: (port, folder) => {
      const file = join(folder, "nats.conf");
      writeFileSync(
        file,
        `host: "127.0.0.1"\nport: ${port}\nhttp: "127.0.0.1:${monitorPort}"\n${configuration}`,
      );
      return ["-c", file];
    },
  });
  const served = async (): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${monitorPort}/varz`);
    return ((await answer.json()) as { in_msgs: number }).in_msgs;
  };
  return { port: server.port, served, stop: server.stop };
}
