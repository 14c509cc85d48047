/** Entry point of FTP: `import { ftp } from "hyperscalejs/ftp"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { FtpCommand } from "./command.ts";
import { FTP, type FtpOptions, FtpTarget } from "./target.ts";

export type { FtpEntry } from "./command.ts";
export type { FtpCall, FtpOptions, FtpResponse, FtpTarget } from "./target.ts";

export type FtpClient = TargetClient<FtpCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly ftp: FtpClient;
  }
}

export const ftp = {
  /** A server: `ftp.target("ftp://user:password@files.test")`; ftps: uses TLS from the start. */
  target: (address: string, options?: FtpOptions): FtpTarget => new FtpTarget(address, options),
};

registerProtocol({
  name: "ftp",
  client: (session) => new TargetClient<FtpCommand>(session),
  ping: {
    schemes: Object.keys(FTP.schemes),
    call: (address, options) => new FtpTarget(address, options).ping(),
  },
});
