/** Entry point of SMTP: `import { smtp } from "hyperscalejs/smtp"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { SmtpCommand } from "./command.ts";
import { SMTP, type SmtpOptions, SmtpTarget } from "./target.ts";

export type { Attachment, Delivery, Mail } from "./command.ts";
export type { SmtpCall, SmtpOptions, SmtpResponse, SmtpTarget } from "./target.ts";

export type SmtpClient = TargetClient<SmtpCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly smtp: SmtpClient;
  }
}

export const smtp = {
  /** A server: `smtp.target("smtp://mail.test:587", { tls: true })`; smtps: uses TLS from the start. */
  target: (address: string, options?: SmtpOptions): SmtpTarget => new SmtpTarget(address, options),
};

registerProtocol({
  name: "smtp",
  client: (session) => new TargetClient<SmtpCommand>(session),
  ping: {
    schemes: Object.keys(SMTP.schemes),
    call: (address, options) => new SmtpTarget(address, options).ping(),
  },
});
