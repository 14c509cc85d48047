/** Connections to mail servers through nodemailer's `smtp-connection`, one mail at a time. */

import { once } from "node:events";
import net from "node:net";
import type MailComposer from "nodemailer/lib/mail-composer";
import type SMTPConnection from "nodemailer/lib/smtp-connection";
import { OptionalPackage } from "../target/driver.ts";
import type {
  Driver,
  DriverAddress,
  DriverEvents,
  Opening,
  Refusal,
  Traffic,
} from "../target/driver-connection.ts";
import type { Delivery, Mail, SmtpCommand } from "./command.ts";
import { ANSWER_BYTES_MAX } from "./limits.ts";

export interface SmtpLogin {
  /** "" for no login. */
  readonly user: string;
  readonly password: string;
  /** Name of the client in EHLO. */
  readonly name: string;
  readonly tls: "none" | "starttls" | "immediate";
}

const connections = new OptionalPackage<typeof SMTPConnection>(
  "nodemailer/lib/smtp-connection",
  "SMTP",
);
const composers = new OptionalPackage<typeof MailComposer>("nodemailer/lib/mail-composer", "SMTP");

export async function loadSmtp(): Promise<void> {
  await connections.load();
  await composers.load();
}

/** Calls have their own deadlines; those of the driver would only interfere. */
const NEVER_MS = 2 ** 31 - 1;

/** Reply code with which the server closes the connection. */
const ENDS_CONNECTION = 421;

interface Client {
  readonly socket: net.Socket;
  readonly connection: SMTPConnection;
}

export class SmtpDriver implements Driver<Client, SmtpCommand> {
  readonly #login: SmtpLogin;
  readonly #encoded = new WeakMap<Mail, Promise<EncodedMail>>();

  constructor(login: SmtpLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<Client> {
    const { host, port } = address;
    const { name, tls } = this.#login;
    const socket = net.connect({ host, port, noDelay: true });
    // Listen before the driver, which replaces the codes of errors.
    socket.on("error", (error) => events.lost(error));
    socket.on("close", () => events.lost(new Error("the server closed the connection")));
    const options: SMTPConnection.Options & { readonly maxResponseSize: number } = {
      ...{ connection: socket, host, port, name },
      secure: tls === "immediate",
      requireTLS: tls === "starttls",
      ignoreTLS: tls !== "starttls",
      ...(tls === "none" ? {} : { tls: address.tls() }),
      ...{ connectionTimeout: NEVER_MS, greetingTimeout: NEVER_MS, socketTimeout: NEVER_MS },
      maxResponseSize: ANSWER_BYTES_MAX,
    };
    const connection = new connections.module(options);
    connection.on("error", (error) => events.lost(plainError(error)));
    return { client: { socket, connection }, ready: this.#ready(socket, connection, events) };
  }

  async #ready(
    socket: net.Socket,
    connection: SMTPConnection,
    events: DriverEvents,
  ): Promise<void> {
    await once(socket, "connect");
    events.connected();
    await completion((done) => connection.connect(done));
    const { password: pass, user } = this.#login;
    if (user !== "")
      await completion((done) => connection.login({ credentials: { user, pass } }, done));
  }

  async perform({ connection }: Client, { mail }: SmtpCommand): Promise<Delivery | null> {
    if (mail === null) {
      await completion((done) => connection.reset(done));
      return null;
    }
    const { from, message, to } = await this.#encode(mail);
    // A separate envelope, because the driver adds the accepted recipients to it. Without the size, by which the driver
    // would reject a mail in the server's place.
    const envelope = { from, to: [...to] };
    try {
      const sent = await new Promise<SMTPConnection.SentMessageInfo>((resolve, reject) => {
        connection.send(envelope, message, (error, info) => {
          if (error === null) resolve(info);
          else reject(error);
        });
      });
      const { accepted, rejected, response } = sent;
      return { accepted, rejected, response };
    } catch (error) {
      // Reset, because the server waits for the rest of a mail that it has refused.
      if (this.refusal(error) !== null) await completion((done) => connection.reset(done));
      throw error;
    }
  }

  requests(): number {
    return 1;
  }

  refusal(error: unknown): Refusal | null {
    const { message, responseCode } = error as SMTPConnection.SMTPError;
    if (responseCode === undefined || responseCode === ENDS_CONNECTION) return null;
    return { code: `${responseCode}`, text: message };
  }

  isMalformed(error: unknown): boolean {
    const { code, response, responseCode } = error as SMTPConnection.SMTPError;
    return code === "EPROTOCOL" || (response !== undefined && responseCode === undefined);
  }

  traffic({ socket }: Client): Traffic {
    return socket;
  }

  close({ connection, socket }: Client): void {
    connection.close();
    socket.destroy();
  }

  /** Encoded once for all users who send it. */
  #encode(mail: Mail): Promise<EncodedMail> {
    let encoded = this.#encoded.get(mail);
    if (encoded === undefined) {
      encoded = encode(mail);
      this.#encoded.set(mail, encoded);
    }
    return encoded;
  }
}

/** Restores the code of the socket's error, which the driver hides, or adds one that is recognised as TLS. */
function plainError(error: SMTPConnection.SMTPError & { readonly originalCode?: string }): Error {
  const code = error.originalCode ?? (error.code === "ETLS" ? "ERR_TLS_STARTTLS" : undefined);
  return code === undefined ? error : Object.assign(new Error(error.message), { code });
}

interface EncodedMail {
  readonly from: string | false;
  readonly to: readonly string[];
  readonly message: Buffer;
}

async function encode(mail: Mail): Promise<EncodedMail> {
  const options = mail as ConstructorParameters<typeof MailComposer>[0];
  const node = new composers.module(options).compile();
  const { from, to } = node.getEnvelope();
  return { from, to, message: await node.build() };
}

function completion(begin: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    begin((error) => {
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}
