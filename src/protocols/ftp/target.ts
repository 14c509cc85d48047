/**
 * \n An FTP server, as users write it.
 *
 *   const files = ftp.target("ftp://shop:secret@files.test", { tls: true });
 *   await step("bill", files.upload("/bills/7.pdf", readFileSync("bill.pdf")));
 */

import { credentialsOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type { FtpCommand, FtpEntry } from "./command.ts";
import { FtpDriver, type FtpLogin, ftpDriver } from "./connection.ts";
import { PATH_BYTES_MAX } from "./limits.ts";

export interface FtpOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address, else anonymous. */
  readonly user?: string;
  readonly password?: string;
  /**
   * Upgrades to TLS by AUTH TLS before the login, and for every file. The call fails when the server does not support
   * it.
   */
  readonly tls?: boolean;
}

export type FtpResponse<Value = unknown> = TargetResult<Value>;
export type FtpCall<Value> = DescribedCall<FtpCommand, Value>;

export const FTP: TargetProtocol = {
  name: "ftp",
  schemes: { ftp: { port: 21, secure: false }, ftps: { port: 990, secure: true } },
  optionNames: ["user", "password", "tls"],
  load: () => ftpDriver.load(),
};

export class FtpTarget {
  readonly #target: Target<FtpCommand>;

  constructor(address: string, options: FtpOptions = {}) {
    this.#target = new Target(
      FTP,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const { origin, url } = this.#target;
    const driver = new FtpDriver(loginOf(url, origin.secure, options));
  }

  /** Lists the contents of a folder. */
  list(path = "/"): FtpCall<readonly FtpEntry[]> {
    const command = { kind: "list", path: checkPath(path) } as const;
    return this.#call("list", command, (value) => value as readonly FtpEntry[]);
  }

  /** Finishes when the server has received the whole file. */
  upload(path: string, content: Payload): FtpCall<null> {
    return this.#upload("upload", path, content, false);
  }

  /** Appends to a file. */
  append(path: string, content: Payload): FtpCall<null> {
    return this.#upload("append", path, content, true);
  }

  #upload(title: string, path: string, payload: Payload, append: boolean): FtpCall<null> {
    const content = Buffer.from(payloadBytes(payload));
    const command = { kind: "upload", path: checkPath(path), content, append } as const;
    return this.#call(title, command, () => null);
  }

  /** Returns the whole file. */
  download(path: string): FtpCall<Buffer> {
    const command = { kind: "download", path: checkPath(path) } as const;
    return this.#call("download", command, (value) => value as Buffer);
  }

  /** Returns the size of a file in bytes. */
  size(path: string): FtpCall<number> {
    return this.#call("size", { kind: "size", path: checkPath(path) }, Number);
  }

  remove(path: string): FtpCall<null> {
    return this.#call("remove", { kind: "remove", path: checkPath(path) }, () => null);
  }

  rename(path: string, to: string): FtpCall<null> {
    const command = { kind: "rename", path: checkPath(path), to: checkPath(to) } as const;
    return this.#call("rename", command, () => null);
  }

  mkdir(path: string): FtpCall<null> {
    return this.#call("mkdir", { kind: "mkdir", path: checkPath(path) }, () => null);
  }

  ping(): FtpCall<string> {
    return this.#call("noop", { kind: "noop" }, () => "answers");
  }

  #call<Value>(
    title: string,
    command: FtpCommand,
    decode: (value: unknown) => Value,
  ): FtpCall<Value> {
    const shown = "path" in command ? `${title} ${command.path}` : title;
    return new DescribedCall(this.#target, { command, title, shown, decode });
  }
}

/** Rejects line breaks, which would start another command. */
function checkPath(path: unknown): string {
  if (typeof path === "string" && path !== "" && !/[\r\n\0]/.test(path))
    if (Buffer.byteLength(path) <= PATH_BYTES_MAX) return path;
  throw new TypeError(
    `${JSON.stringify(path)} is not a path: 1 to ${PATH_BYTES_MAX} bytes, one line`,
  );
}

function loginOf(url: URL, secure: boolean, options: FtpOptions): FtpLogin {
  const { tls = false } = options;
  if (secure && tls)
    throw new TypeError("ftps:// speaks TLS from the beginning: leave out tls, or write ftp://");
  const { password, user } = credentialsOf(url, options);
  return {
    ...(user === "" ? { user: "anonymous", password: "guest" } : { user, password }),
    tls: secure ? "immediate" : tls ? "explicit" : "none",
  };
}
