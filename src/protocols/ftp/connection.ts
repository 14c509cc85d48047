/**
 * Connections to FTP servers through the driver `basic-ftp`, one command at a time. Files and listings use separate
 * data connections in passive mode; their bytes are counted, too.
 */

import type net from "node:net";
import { Readable, Writable } from "node:stream";
import type { FTPError, Client as FtpClient } from "basic-ftp";
import { OptionalPackage } from "../target/driver.ts";
import type {
  Driver,
  DriverAddress,
  DriverEvents,
  Opening,
  Refusal,
  Traffic,
} from "../target/driver-connection.ts";
import { DriverSockets } from "../target/driver-sockets.ts";
import type { FtpCommand, FtpEntry } from "./command.ts";
import { DOWNLOAD_BYTES_MAX } from "./limits.ts";

export interface FtpLogin {
  readonly user: string;
  readonly password: string;
  readonly tls: "none" | "explicit" | "immediate";
}

export const ftpDriver = new OptionalPackage<typeof import("basic-ftp")>("basic-ftp", "FTP");

interface Client {
  readonly ftp: FtpClient;
  readonly sockets: DriverSockets;
}

/** Reply code with which the server closes the connection. */
const ENDS_CONNECTION = 421;
/** Reply codes start with a digit from 1 to 5. */
const CODE_MAX = 599;

export class FtpDriver implements Driver<Client, FtpCommand> {
  readonly #login: FtpLogin;

  constructor(login: FtpLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<Client> {
    const sockets = new DriverSockets();
    // Calls have their own deadlines.
    const ftp = new ftpDriver.module.Client(0);
    const context = ftp.ftp as unknown as ContextParts;
    const make = context._newSocket.bind(context);
    let isControl = true;
    context._newSocket = () => {
      const socket = sockets.add(make(), isControl ? events : undefined);
      socket.setNoDelay(true);
      isControl = false;
      return socket;
    };
    return { client: { ftp, sockets }, ready: this.#ready(ftp, address) };
  }

  async #ready(ftp: FtpClient, address: DriverAddress): Promise<void> {
    const { password, tls, user } = this.#login;
    const { host, port } = address;
    if (tls === "immediate") await ftp.connectImplicitTLS(host, port, address.tls());
    else await ftp.connect(host, port);
    if (tls === "explicit") await ftp.useTLS(address.tls());
    await ftp.login(user, password);
    await ftp.useDefaultSettings();
  }

  perform({ ftp }: Client, command: FtpCommand): Promise<unknown> {
    switch (command.kind) {
      case "list":
        return listed(ftp, command.path);
      case "upload": {
        const source = Readable.from(command.content.length === 0 ? [] : [command.content]);
        return command.append
          ? ftp.appendFrom(source, command.path)
          : ftp.uploadFrom(source, command.path);
      }
      case "download":
        return downloaded(ftp, command.path);
      case "size":
        return ftp.size(command.path);
      case "remove":
        return ftp.remove(command.path);
      case "rename":
        return ftp.rename(command.path, command.to);
      case "mkdir":
        return ftp.send(`MKD ${command.path}`);
      case "noop":
        return ftp.send("NOOP");
    }
  }

  requests(): number {
    return 1;
  }

  refusal(error: unknown): Refusal | null {
    const code = codeOf(error);
    if (code === null || code > CODE_MAX || code === ENDS_CONNECTION) return null;
    return { code: `${code}`, text: error instanceof Error ? error.message : "" };
  }

  /** Detects replies that do not have the form of one. */
  isMalformed(error: unknown): boolean {
    const code = codeOf(error);
    if (code !== null) return code > CODE_MAX;
    return error instanceof Error && /^(Can't parse|Cannot parse|Unexpected)/.test(error.message);
  }

  traffic({ sockets }: Client): Traffic {
    return sockets;
  }

  close({ ftp, sockets }: Client): void {
    ftp.close();
    sockets.destroy();
  }
}

/** Private parts of the driver's context. */
interface ContextParts {
  _newSocket(): net.Socket;
}

function codeOf(error: unknown): number | null {
  return error instanceof Error && error.name === "FTPError" ? (error as FTPError).code : null;
}

async function listed(ftp: FtpClient, path: string): Promise<readonly FtpEntry[]> {
  const entries = await ftp.list(path);
  return entries.map(({ isDirectory, name, size }) => ({
    name,
    bytes: size,
    isFolder: isDirectory,
  }));
}

async function downloaded(ftp: FtpClient, path: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  const sink = new Writable({
    write: (part: Buffer, _, done) => {
      length += part.length;
      parts.push(part);
      done(length > DOWNLOAD_BYTES_MAX ? tooLong() : null);
    },
  });
  await ftp.downloadTo(sink, path);
  return Buffer.concat(parts);
}

function tooLong(): Error {
  const error = new Error(`a file is longer than ${DOWNLOAD_BYTES_MAX} bytes`);
  return Object.assign(error, { code: "ENOBUFS" });
}
