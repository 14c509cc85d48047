/**
 * Checks before the first user starts that something listens at the addresses of the workflow; ten seconds of refused
 * connections help no one. Only an explicit refusal counts; slow or odd servers are left to the run.
 */

import net from "node:net";
import { errorCode } from "./errors.ts";
import type { Origin } from "./net/origin.ts";

/** Longest delay that the check adds to the start of a run. */
const CHECK_MS_MAX = 2_000;

export async function checkOrigins(origins: readonly Origin[], timeoutMs: number): Promise<void> {
  const prepared = origins.filter((origin) => origin.address !== undefined);
  await Promise.all(prepared.map((origin) => checkOrigin(origin, timeoutMs)));
}

function checkOrigin(origin: Origin, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(origin.nextAddress());
    const done = (): void => {
      socket.destroy();
      resolve();
    };
    socket.setTimeout(Math.min(timeoutMs, CHECK_MS_MAX), done);
    socket.on("connect", done);
    socket.on("error", (error) => {
      if (errorCode(error) !== "ECONNREFUSED") {
        done();
        return;
      }
      const { hostname, port } = origin.proxy ?? origin;
      const what = origin.proxy === null ? "server" : "proxy";
      reject(
        new Error(
          `nothing listens at ${hostname}:${port}: the connection was refused. ` +
            `Is the ${what} running there?`,
        ),
      );
    });
  });
}
