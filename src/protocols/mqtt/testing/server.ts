/** mosquitto, a real MQTT server for the tests. */

import { readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";

export const MOSQUITTO: ServerPackage = { program: "mosquitto", package: "mosquitto" };
export const mosquittoProgram = findProgram(MOSQUITTO);

/** `configuration` is appended to that of a plain server; `files` are written beside it. */
export async function startMosquitto(
  configuration: readonly string[] = ["allow_anonymous true"],
  files: Readonly<Record<string, string>> = {},
): Promise<CountingServer> {
  if (mosquittoProgram === null) throw new Error("there is no mosquitto");
  let log = "";
  const server = await startServer({
    program: mosquittoProgram,
    args: (port, folder) => {
      const file = join(folder, "mosquitto.conf");
      log = join(folder, "mosquitto.log");
      for (const [name, text] of Object.entries(files))
        writeFileSync(join(folder, name), text, { mode: 0o600 });
      const lines = [
        `listener ${port} 127.0.0.1`,
        `user ${userInfo().username}`,
        "log_type all",
        `log_dest file ${log}`,
        "max_connections 4000",
        ...configuration.map((line) => line.replaceAll("FOLDER", folder)),
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      return ["-c", file];
    },
  });
  const served = async (): Promise<number> =>
    (readFileSync(log, "utf8").match(/Received PUBLISH from/g) ?? []).length;
  return { port: server.port, served, stop: server.stop };
}
