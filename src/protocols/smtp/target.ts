/**
 * \n A mail server, as users write it.
 *
 *   const relay = smtp.target("smtp://mail.test:587", { user: "shop", password, tls: true });
 *   const bill = { filename: "bill.pdf", content: readFileSync("bill.pdf") };
 *   await step("bill", relay.send({ from, to, subject: "Your bill", text: "…", attachments: [bill] }));
 */

import { hostname } from "node:os";
import { credentialsOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import type { TargetResult } from "../target/result.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type { Delivery, Mail, SmtpCommand } from "./command.ts";
import { loadSmtp, SmtpDriver, type SmtpLogin } from "./connection.ts";
import { RECIPIENTS_MAX } from "./limits.ts";

export interface SmtpOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address, else no login. */
  readonly user?: string;
  readonly password?: string;
  /** Name in EHLO; the name of this machine by default. */
  readonly name?: string;
  /** Upgrades to TLS by STARTTLS before anything else. The call fails when the server does not support it. */
  readonly tls?: boolean;
}

export type SmtpResponse<Value = Delivery> = TargetResult<Value>;

/** A described mail. */
export type SmtpCall<Value> = DescribedCall<SmtpCommand, Value>;

export const SMTP: TargetProtocol = {
  name: "smtp",
  schemes: { smtp: { port: 25, secure: false }, smtps: { port: 465, secure: true } },
  optionNames: ["user", "password", "name", "tls"],
  load: loadSmtp,
};

export class SmtpTarget {
  readonly #target: Target<SmtpCommand>;

  constructor(address: string, options: SmtpOptions = {}) {
    this.#target = new Target(
      SMTP,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const { origin, url } = this.#target;
    const driver = new SmtpDriver(loginOf(url, origin.secure, options));
  }

  /** Sends one mail, from MAIL to the server's final reply; encoded once, however often it is sent. */
  send(mail: Mail): SmtpCall<Delivery> {
    if (typeof mail.from !== "string" || mail.from === "")
      throw new TypeError('a mail has a sender: from: "shop@shop.test"');
    const addresses = addressesOf(mail);
    if (addresses.length === 0 || addresses.length > RECIPIENTS_MAX)
      throw new RangeError(`a mail has 1 to ${RECIPIENTS_MAX} recipients: to, cc, bcc`);
    return new DescribedCall(this.#target, {
      command: { mail: { ...mail } },
      title: "send",
      shown: `mail to ${addresses.join(", ")}`,
      decode: (value) => value as Delivery,
    });
  }

  ping(): SmtpCall<string> {
    const command = { mail: null };
    return new DescribedCall(this.#target, { command, title: "rset", decode: () => "answers" });
  }
}

function addressesOf({ bcc = [], cc = [], to = [] }: Mail): readonly string[] {
  return [to, cc, bcc].flat().filter((address) => address !== "");
}

function loginOf(url: URL, secure: boolean, options: SmtpOptions): SmtpLogin {
  const { name = hostname(), tls = false } = options;
  if (secure && tls)
    throw new TypeError("smtps:// speaks TLS from the beginning: leave out tls, or write smtp://");
  return {
    ...credentialsOf(url, options),
    name,
    tls: secure ? "immediate" : tls ? "starttls" : "none",
  };
}
