/** A real FTP server, and a scripted one. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CountingServer } from "../../testing/contract.ts";
import { findPythonModule, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const PYFTPDLIB: ServerPackage = { program: "pyftpdlib", package: "python3-pyftpdlib" };
export const pyftpdlib = findPythonModule(PYFTPDLIB);

const QUIET_MS = 100;

/** Logs every answered command to a file. */
const SERVER = `
import sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib import handlers, servers
port, root, log, cert = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
base = handlers.TLS_FTPHandler if cert else handlers.FTPHandler
class Handler(base):
    def log_cmd(self, cmd, arg, respcode, respstr):
        with open(log, "a") as file:
            file.write(cmd + "\\n")
if cert:
    Handler.certfile, Handler.keyfile = cert
    Handler.tls_control_required = Handler.tls_data_required = True
Handler.authorizer = DummyAuthorizer()
Handler.authorizer.add_user("shop", "secret", root, perm="elradfmwMT")
servers.FTPServer(("127.0.0.1", port), Handler, backlog=1024).serve_forever()
`;

export interface FtpServer extends CountingServer {
  /** Includes user and password. */
  readonly url: string;
  /** Reads a file of the server. */
  file(name: string): Buffer;
  /** Number of times it has answered a command. */
  count(command: string): number;
}

/** Counts SIZE commands as served. With certificate files it accepts TLS only. */
export async function startFtp(...certificate: readonly string[]): Promise<FtpServer> {
  if (pyftpdlib === null) throw new Error("there is no pyftpdlib");
  const server = await startServer({
    program: pyftpdlib,
    args: (port, folder) => {
      mkdirSync(join(folder, "files"));
      writeFileSync(join(folder, "files", "hello"), "hello");
      writeFileSync(join(folder, "log"), "");
      writeFileSync(join(folder, "server.py"), SERVER);
      return ["server.py", `${port}`, "files", join(folder, "log"), ...certificate];
    },
  });
  const count = (command: string): number =>
    readFileSync(join(server.folder, "log"), "utf8")
      .split("\n")
      .filter((line) => line === command).length;
  return {
    port: server.port,
    url: `ftp://shop:secret@127.0.0.1:${server.port}`,
    file: (name) => readFileSync(join(server.folder, "files", name)),
    count,
    served: async () => {
      // The server writes its log after it has answered.
      for (let before = -1, now = count("SIZE"); ; before = now, now = count("SIZE")) {
        if (now === before) return now;
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      }
    },
    stop: server.stop,
  };
}

/** Accepts every login and invokes the callback for each SIZE. */
export function listenFiles(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    socket.write("220 hello\r\n");
    socket.on("data", (bytes) => {
      for (const line of String(bytes).split("\r\n").filter(Boolean)) {
        if (line.startsWith("SIZE")) onCall(socket);
        else socket.write(line.startsWith("USER") ? "331 and?\r\n" : "200 well\r\n");
      }
    });
  });
}
