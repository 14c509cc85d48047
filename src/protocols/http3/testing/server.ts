/** Starts caddy and finds the HTTP/3 driver package, which is too large to bundle. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate } from "../../../demo/certificate.ts";
import { DEFAULT_CALL_SETTINGS, prepareCalls } from "../../protocol.ts";
import type { CountingServer } from "../../testing/contract.ts";
import {
  absent,
  findNpmPackage,
  findProgram,
  type ServerPackage,
  startServer,
} from "../../testing/real-server.ts";

const CADDY: ServerPackage = { program: "caddy", package: "caddy" };
const caddy = findProgram(CADDY);
/** Folder whose node_modules contain the driver. */
export const driverFolder = findNpmPackage("@currentspace/http3", "0.9.0");

export const isPresent = caddy !== null && driverFolder !== null;
export const WHY_ABSENT =
  caddy === null
    ? absent(CADDY)
    : "no @currentspace/http3 (120 MB from npm; npm run test:protocols fetches it)";

/** Packages are resolved beside the workflow; for tests, that is the folder it was installed to. */
export async function useDriver(): Promise<void> {
  if (driverFolder !== null)
    await prepareCalls([], { settings: DEFAULT_CALL_SETTINGS, folder: driverFolder });
}

const QUIET_MS = 100;

export interface CaddyServer extends CountingServer {
  readonly cert: string;
  /** HTTP/3 requests for this path in the server's log. */
  count(path: string): Promise<number>;
}

/** Answers with the protocol of the request; `/missing` does not exist. */
export async function startCaddy(): Promise<CaddyServer> {
  if (caddy === null) throw new Error("there is no caddy");
  const { cert, key } = makeCertificate({ hosts: ["localhost"] });
  const server = await startServer({
    program: caddy,
    args: (port, folder) => {
      writeFileSync(join(folder, "cert.pem"), cert);
      writeFileSync(join(folder, "key.pem"), key);
      writeFileSync(join(folder, "access.log"), "");
      writeFileSync(join(folder, "Caddyfile"), configuration(port, folder));
      return ["run", "--config", "Caddyfile", "--adapter", "caddyfile"];
    },
    environment: (_, folder) => ({ XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }),
  });
  const logged = (path: string): number =>
    readFileSync(join(server.folder, "access.log"), "utf8")
      .split("\n")
      .filter((line) => line.includes('"HTTP/3.0"') && line.includes(`"uri":"${path}"`)).length;
  const count = async (path: string): Promise<number> => {
    // The server writes its log after it has answered.
    for (let before = -1, now = logged(path); ; before = now, now = logged(path)) {
      if (now === before) return now;
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
  };
  return { port: server.port, cert, count, served: () => count("/"), stop: server.stop };
}

function configuration(port: number, folder: string): string {
  return `{
  admin off
  auto_https off
}
:${port} {
  tls ${folder}/cert.pem ${folder}/key.pem
  log {
    output file ${folder}/access.log
  }
  handle /missing {
    respond "no" 404
  }
  handle /long {
    respond "${"x".repeat(1_000)}"
  }
  handle {
    respond "{http.request.proto} {http.request.method} {http.request.body}"
  }
}
`;
}
