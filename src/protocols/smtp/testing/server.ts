/** A real mail server, and a scripted one. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CountingServer } from "../../testing/contract.ts";
import { findPythonModule, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const AIOSMTPD: ServerPackage = { program: "aiosmtpd", package: "python3-aiosmtpd" };
export const aiosmtpdProgram = findPythonModule(AIOSMTPD);

export interface MailServer extends CountingServer {
  /** Contents of its mailbox. */
  mails(): readonly string[];
}

/** Delivers everything into a mailbox. `options` as on its command line. */
export async function startMail(...options: readonly string[]): Promise<MailServer> {
  if (aiosmtpdProgram === null) throw new Error("there is no aiosmtpd");
  let box = "";
  const server = await startServer({
    program: aiosmtpdProgram,
    args: (port, folder) => {
      box = join(folder, "mail");
      return [
        ...["-m", "aiosmtpd", "-n", "-l", `127.0.0.1:${port}`, ...options],
        ...["-c", "aiosmtpd.handlers.Mailbox", box],
      ];
    },
  });
  const files = (): string[] => readdirSync(join(box, "new")).map((name) => join(box, "new", name));
  return {
    port: server.port,
    mails: () => files().map((file) => readFileSync(file, "utf8")),
    served: async () => files().length,
    stop: server.stop,
  };
}

/** Accepts every client, and invokes the callback for each mail. */
export function listenMails(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    socket.write("220 hello\r\n");
    socket.on("data", (bytes) => {
      if (/^EHLO/i.test(String(bytes))) socket.write("250 hello\r\n");
      else onCall(socket);
    });
  });
}
