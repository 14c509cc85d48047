/** A real SSH server, and one that is scripted after the login. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ssh2 from "ssh2";
import type { CountingServer } from "../../testing/contract.ts";
import { findPythonModule, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const ASYNCSSH: ServerPackage = { program: "asyncssh", package: "python3-asyncssh" };
export const asyncssh = findPythonModule(ASYNCSSH);

/** Implements four programs, and logs each command to a file. OpenSSH's server would need root. */
const SERVER = `
import asyncio, sys, asyncssh
port, root, log, keys = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
class Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True
    def password_auth_supported(self):
        return True
    def validate_password(self, username, password):
        return (username, password) == ("shop", "secret")
async def run(process):
    with open(log, "a") as file:
        file.write(process.command + "\\n")
    program, *words = process.command.split()
    if program == "cat":
        process.stdout.write(await process.stdin.read())
    elif program == "fail":
        process.stderr.write("it failed\\nreally\\n")
    elif program == "wait":
        await asyncio.sleep(60)
    else:
        process.stdout.write(" ".join(words))
    process.exit(int(words[0]) if program == "fail" else 0)
class Files(asyncssh.SFTPServer):
    def __init__(self, channel):
        super().__init__(channel, chroot=root)
async def main():
    key = asyncssh.generate_private_key("ssh-ed25519")
    print("fingerprint " + key.get_fingerprint(), flush=True)
    await asyncssh.create_server(Server, "127.0.0.1", port, server_host_keys=[key],
        process_factory=run, sftp_factory=Files, authorized_client_keys=keys, backlog=1024)
    await asyncio.Event().wait()
asyncio.run(main())
`;

export interface SshServer extends CountingServer {
  /** Includes user and password. */
  readonly url: string;
  readonly fingerprint: string;
  /** A key that it accepts. */
  readonly privateKey: string;
  file(name: string): Buffer;
  /** Number of times it executed this command. */
  count(command: string): number;
}

/** Counts `echo hello` as served. */
export async function startSsh(): Promise<SshServer> {
  if (asyncssh === null) throw new Error("there is no asyncssh");
  const key = ssh2.utils.generateKeyPairSync("ed25519");
  const server = await startServer({
    program: asyncssh,
    args: (port, folder) => {
      mkdirSync(join(folder, "files"));
      writeFileSync(join(folder, "log"), "");
      writeFileSync(join(folder, "keys"), `${key.public}\n`);
      writeFileSync(join(folder, "server.py"), SERVER);
      return ["-W", "ignore", "server.py", `${port}`, join(folder, "files"), "log", "keys"];
    },
  });
  const count = (command: string): number =>
    readFileSync(join(server.folder, "log"), "utf8")
      .split("\n")
      .filter((line) => line === command).length;
  return {
    port: server.port,
    url: `ssh://shop:secret@127.0.0.1:${server.port}`,
    fingerprint: /fingerprint (\S+)/.exec(server.output())?.[1] ?? "",
    privateKey: key.private,
    file: (name) => readFileSync(join(server.folder, "files", name)),
    count,
    served: async () => count("echo hello"),
    stop: server.stop,
  };
}

/** Accepts every login, and invokes the callback for each command; the bytes it then sends are not SSH. */
export function listenCommands(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  const hostKeys = [ssh2.utils.generateKeyPairSync("ed25519").private];
  return listenTcp((socket) => {
    const server = new ssh2.Server({ hostKeys }, (client) => {
      client.on("authentication", (context) => context.accept());
      client.on("error", () => undefined);
      client.on("session", (accept) => accept().on("exec", () => onCall(socket)));
    });
    server.injectSocket(socket);
  });
}
