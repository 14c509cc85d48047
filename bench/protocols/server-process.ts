/** Our own server programs run in a separate process, so that their time is not counted. */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startShop } from "../../src/protocols/grpc/testing/server.ts";
import { startMongodb } from "../../src/protocols/mongodb/testing/server.ts";
import { startEcho } from "./websocket-echo.ts";

const STARTS = { grpc: () => startShop(), mongodb: () => startMongodb(), websocket: startEcho };

interface ServerApart {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startApart(name: keyof typeof STARTS): Promise<ServerApart> {
  const child = fork(fileURLToPath(import.meta.url), [name], { execArgv: ["--import", "tsx"] });
  const [port] = (await once(child, "message")) as [number];
  return {
    port,
    stop: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

const name = process.argv[2];
if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url))
  if (name === "grpc" || name === "mongodb" || name === "websocket")
    process.send((await STARTS[name]()).port);
