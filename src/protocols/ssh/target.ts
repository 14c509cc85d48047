/**
 * \n An SSH server, as users write it: commands, and files by SFTP.
 *
 *   const host = ssh.target("ssh://shop@host.test", { privateKey: readFileSync("key", "utf8") });
 *   const up = await step("uptime", host.exec("uptime"));                 // up.value.stdout
 *   await step("bill", host.put("/bills/7.pdf", readFileSync("bill.pdf")));
 */

import { credentialsOf } from "../target/credentials.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type { ExecResult, SftpEntry, SshCommand } from "./command.ts";
import { SshDriver, type SshLogin, sshDriver } from "./connection.ts";

export interface SshOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address. */
  readonly user?: string;
  readonly password?: string;
  /** In the format of `ssh-keygen`: `readFileSync("key", "utf8")`. */
  readonly privateKey?: string;
  /** Passphrase of the private key. */
  readonly passphrase?: string;
  /** "SHA256:…" of the server's key; without it, any server is trusted. */
  readonly fingerprint?: string;
}

export interface ExecOptions {
  /** Standard input of the program. */
  readonly input?: Payload;
  /** Exit codes that count as success; `[0]` by default. */
  readonly codes?: readonly number[];
}

export type SshResponse<Value = unknown> = TargetResult<Value>;
export type SshCall<Value> = DescribedCall<SshCommand, Value>;

export const SSH: TargetProtocol = {
  name: "ssh",
  schemes: { ssh: { port: 22, secure: false }, sftp: { port: 22, secure: false } },
  optionNames: ["user", "password", "privateKey", "fingerprint"],
  load: () => sshDriver.load(),
};

export class SshTarget {
  readonly #target: Target<SshCommand>;

  constructor(address: string, options: SshOptions = {}) {
    const { passphrase, ...others } = options;
    this.#target = new Target(
      SSH,
      address,
      others,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const driver = new SshDriver(loginOf(this.#target.url, options));
  }

  /** Finishes with the program; a failed one is reported as EXIT_ and its code. */
  exec(command: string, options: ExecOptions = {}): SshCall<ExecResult> {
    checkNames("exec", options, ["input", "codes"]);
    if (typeof command !== "string" || command.trim() === "")
      throw new TypeError('a command is a text: exec("uptime")');
    const { codes = [0], input = "" } = options;
    const content = Buffer.from(payloadBytes(input));
    const title = `exec ${command.trim().split(/\s+/, 1)[0]}`;
    return new DescribedCall(this.#target, {
      command: { kind: "exec", command, input: content, codes },
      title,
      shown: command,
      decode: (value) => value as ExecResult,
    });
  }

  /** Finishes when the server has received the whole file. */
  put(path: string, content: Payload): SshCall<null> {
    const bytes = Buffer.from(payloadBytes(content));
    return this.#call({ kind: "put", path: checkPath(path), content: bytes }, () => null);
  }

  /** Returns the whole file. */
  get(path: string): SshCall<Buffer> {
    return this.#call({ kind: "get", path: checkPath(path) }, (value) => value as Buffer);
  }

  list(path = "."): SshCall<readonly SftpEntry[]> {
    const command = { kind: "list", path: checkPath(path) } as const;
    return this.#call(command, (value) => value as readonly SftpEntry[]);
  }

  remove(path: string): SshCall<null> {
    return this.#call({ kind: "remove", path: checkPath(path) }, () => null);
  }

  mkdir(path: string): SshCall<null> {
    return this.#call({ kind: "mkdir", path: checkPath(path) }, () => null);
  }

  ping(): SshCall<string> {
    return this.#call({ kind: "open" }, () => "answers");
  }

  #call<Value>(
    command: Exclude<SshCommand, { kind: "exec" }>,
    decode: (value: unknown) => Value,
  ): SshCall<Value> {
    const title = command.kind === "open" ? "open" : `sftp ${command.kind}`;
    const shown = "path" in command ? `${title} ${command.path}` : title;
    return new DescribedCall(this.#target, { command, title, shown, decode });
  }
}

function checkPath(path: unknown): string {
  if (typeof path === "string" && path !== "" && !path.includes("\0")) return path;
  throw new TypeError(`${JSON.stringify(path)} is not a path`);
}

function loginOf(url: URL, options: SshOptions): SshLogin {
  const { fingerprint = "", passphrase = "", privateKey = "" } = options;
  const { password, user } = credentialsOf(url, options);
  if (user === "") throw new TypeError("ssh.target: the address names no user");
  if (fingerprint !== "" && !/^SHA256:[A-Za-z0-9+/]{43}$/.test(fingerprint))
    throw new TypeError('fingerprint is "SHA256:…", as ssh-keygen -l shows it');
  return { user, password, privateKey, passphrase, fingerprint };
}
