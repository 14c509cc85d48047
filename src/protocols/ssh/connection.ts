/** Connections to SSH servers through the driver `ssh2`, one command or file at a time. */

import { createHash } from "node:crypto";
import net from "node:net";
import type { SFTPWrapper, Client as SshClient } from "ssh2";
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
import type { ExecResult, SftpEntry, SshCommand } from "./command.ts";
import { FILE_BYTES_MAX, OUTPUT_BYTES_MAX } from "./limits.ts";

export interface SshLogin {
  readonly user: string;
  readonly password: string;
  /** In the format of `ssh-keygen`; "" for none. */
  readonly privateKey: string;
  readonly passphrase: string;
  /** "SHA256:…" of the server's key; "" trusts any server. */
  readonly fingerprint: string;
}

export const sshDriver = new OptionalPackage<typeof import("ssh2")>("ssh2", "SSH");

interface Client {
  readonly ssh: SshClient;
  readonly sockets: DriverSockets;
  /** Opened by the first file. */
  sftp: Promise<SFTPWrapper> | null;
}

type Exec = Extract<SshCommand, { kind: "exec" }>;

export class SshDriver implements Driver<Client, SshCommand> {
  readonly #login: SshLogin;

  constructor(login: SshLogin) {
    this.#login = login;
  }

  open({ host, port }: DriverAddress, events: DriverEvents): Opening<Client> {
    const sockets = new DriverSockets();
    const ssh = new sshDriver.module.Client();
    const ready = new Promise<void>((resolve, reject) => {
      ssh.once("ready", resolve);
      ssh.once("error", reject);
    });
    // Listen before the socket does: a failed login is more precise than a closed connection.
    ssh.on("error", (error) => events.lost(error));
    const sock = sockets.add(net.connect({ host, port, noDelay: true }), events);
    const { fingerprint, passphrase, password, privateKey, user } = this.#login;
    ssh.connect({
      sock,
      username: user,
      ...(password === "" ? {} : { password }),
      ...(privateKey === "" ? {} : { privateKey, passphrase }),
      // Calls have their own deadlines.
      readyTimeout: 0,
      ...(fingerprint === ""
        ? {}
        : { hostVerifier: (key: Buffer) => fingerprintOf(key) === fingerprint }),
    });
    return { client: { ssh, sockets, sftp: null }, ready };
  }

  async perform(client: Client, command: SshCommand): Promise<unknown> {
    switch (command.kind) {
      case "exec":
        return executed(client.ssh, command);
      case "put":
        return onFiles(client, (sftp, done) => sftp.writeFile(command.path, command.content, done));
      case "get":
        return fetched(client, command.path);
      case "list":
        return listed(client, command.path);
      case "remove":
        return onFiles(client, (sftp, done) => sftp.unlink(command.path, done));
      case "mkdir":
        return onFiles(client, (sftp, done) => sftp.mkdir(command.path, done));
      case "open":
        return opened(client.ssh);
    }
  }

  requests(): number {
    return 1;
  }

  refusal(error: unknown): Refusal | null {
    if (!(error instanceof Error)) return null;
    const { code, level, refusal } = error as SshError;
    if (refusal !== undefined) return { code: refusal, text: error.message };
    if (level === "client-authentication")
      return { code: "AUTHENTICATION_FAILED", text: error.message };
    // Only SFTP responses have numeric codes.
    const status = level === undefined && typeof code === "number" ? STATUS[code] : undefined;
    return status === undefined ? null : { code: status, text: error.message };
  }

  isMalformed(error: unknown): boolean {
    const { level, message } = error as SshError;
    if (level === "protocol" || level === "handshake") return true;
    // Packets that cannot be decrypted are thrown as plain errors.
    return level === undefined && /packet|MAC\b|Invalid|Malformed/i.test(message);
  }

  traffic({ sockets }: Client): Traffic {
    return sockets;
  }

  close({ sockets, ssh }: Client): void {
    ssh.removeAllListeners();
    ssh.on("error", () => undefined);
    ssh.end();
    sockets.destroy();
  }
}

interface SshError extends Error {
  /** Phase of the error: "client-authentication", "protocol", … */
  readonly level?: string;
  readonly code?: unknown;
  /** Set by this module. */
  readonly refusal?: string;
}

/** draft-ietf-secsh-filexfer-02, section 7. */
const STATUS: Readonly<Record<number, string>> = {
  ...{ 1: "EOF", 2: "NO_SUCH_FILE", 3: "PERMISSION_DENIED", 4: "FAILURE", 5: "BAD_MESSAGE" },
  8: "OP_UNSUPPORTED",
};

function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
}

function executed(ssh: SshClient, { codes, command, input }: Exec): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    ssh.exec(command, (error, stream) => {
      if (error !== undefined) {
        reject(refusedWith("EXEC_REFUSED", error.message));
        return;
      }
      const output = new Output((problem) => {
        stream.destroy();
        reject(problem);
      });
      stream.on("data", (bytes: Buffer) => output.take(output.stdout, bytes));
      stream.stderr.on("data", (bytes: Buffer) => output.take(output.stderr, bytes));
      stream.on("close", (code: number | null | undefined, signal = "") => {
        if (code === undefined) reject(new Error("the server closed the connection"));
        else if (code !== null && codes.includes(code)) resolve(output.result(code, signal));
        else
          reject(
            refusedWith(code === null ? signal : `EXIT_${code}`, output.firstErrorLine(command)),
          );
      });
      stream.end(input);
    });
  });
}

/** Output of a program, bounded. */
class Output {
  readonly stdout: Buffer[] = [];
  readonly stderr: Buffer[] = [];
  readonly #failed: (problem: Error) => void;
  #bytes = 0;

  constructor(failed: (problem: Error) => void) {
    this.#failed = failed;
  }

  take(parts: Buffer[], bytes: Buffer): void {
    this.#bytes += bytes.length;
    if (this.#bytes > OUTPUT_BYTES_MAX) this.#failed(tooLong("an output", OUTPUT_BYTES_MAX));
    else parts.push(bytes);
  }

  result(code: number, signal: string): ExecResult {
    return { code, signal, stdout: Buffer.concat(this.stdout), stderr: Buffer.concat(this.stderr) };
  }

  /** First line of its error output, for display. */
  firstErrorLine(command: string): string {
    const [line = ""] = Buffer.concat(this.stderr).toString("utf8").split("\n", 1);
    return line === "" ? `${command} failed` : line;
  }
}

function refusedWith(refusal: string, text: string): Error {
  return Object.assign(new Error(text), { refusal });
}

function tooLong(what: string, bytesMax: number): Error {
  return Object.assign(new Error(`${what} is longer than ${bytesMax} bytes`), { code: "ENOBUFS" });
}

type Done<Value> = (error?: Error | null, value?: Value) => void;

async function onFiles<Value>(
  client: Client,
  ask: (sftp: SFTPWrapper, done: Done<Value>) => unknown,
): Promise<Value> {
  client.sftp ??= new Promise((resolve, reject) => {
    client.ssh.sftp((error, sftp) => {
      if (error === undefined) resolve(sftp);
      else reject(refusedWith("SFTP_REFUSED", error.message));
    });
  });
  const sftp = await client.sftp;
  return new Promise((resolve, reject) => {
    ask(sftp, (error, value) => {
      if (error === null || error === undefined) resolve(value as Value);
      else reject(error);
    });
  });
}

async function fetched(client: Client, path: string): Promise<Buffer> {
  const { size } = await onFiles<{ readonly size: number }>(client, (sftp, done) =>
    sftp.stat(path, done),
  );
  if (size > FILE_BYTES_MAX) throw tooLong("a file", FILE_BYTES_MAX);
  return onFiles<Buffer>(client, (sftp, done) => sftp.readFile(path, done));
}

async function listed(client: Client, path: string): Promise<readonly SftpEntry[]> {
  type Entries = Parameters<Parameters<SFTPWrapper["readdir"]>[1]>[1];
  const entries = await onFiles<Entries>(client, (sftp, done) => sftp.readdir(path, done));
  return entries.map(({ attrs, filename }) => ({
    name: filename,
    bytes: attrs.size,
    isFolder: attrs.isDirectory(),
  }));
}

/** The smallest operation that every server supports: opens and closes a channel. */
function opened(ssh: SshClient): Promise<string> {
  return new Promise((resolve, reject) => {
    ssh.exec("true", (error, stream) => {
      if (error !== undefined) reject(refusedWith("EXEC_REFUSED", error.message));
      else stream.on("close", () => resolve("answers")).resume();
    });
  });
}
