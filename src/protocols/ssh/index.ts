/** Entry point of SSH and SFTP: `import { ssh } from "hyperscalejs/ssh"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { SshCommand } from "./command.ts";
import { SSH, type SshOptions, SshTarget } from "./target.ts";

export type { ExecResult, SftpEntry } from "./command.ts";
export type { ExecOptions, SshCall, SshOptions, SshResponse, SshTarget } from "./target.ts";

export type SshClient = TargetClient<SshCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly ssh: SshClient;
  }
}

export const ssh = {
  /** A server: `ssh.target("ssh://shop@host.test", { privateKey })`. */
  target: (address: string, options?: SshOptions): SshTarget => new SshTarget(address, options),
};

registerProtocol({
  name: "ssh",
  client: (session) => new TargetClient<SshCommand>(session),
  ping: {
    schemes: Object.keys(SSH.schemes),
    call: (address, options) => new SshTarget(address, options).ping(),
  },
});
