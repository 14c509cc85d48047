/**
 * Real servers for the reporters: programs of Debian's packages (src/protocols/testing/real-server.ts fetches
 * them), and packages of npm in the same cache, which are no dependencies of anything. Started on ports of
 * 127.0.0.1 for one test. What cannot be had is skipped by name.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "../../src/protocols/testing/real-server.ts";
import { Unavailable } from "./measure.ts";

export { freePort } from "../../src/protocols/testing/real-server.ts";

const FETCH_MS_MAX = 300_000;
const READY_MS_MAX = 240_000;

export type Program = NonNullable<ReturnType<typeof findProgram>>;

/** The program of a Debian package. */
export function programOf(program: string, debian: string): Program {
  const found = findProgram({ program, package: debian });
  if (found !== null) return found;
  throw new Unavailable(`no ${program} here, and Debian's package ${debian} cannot be fetched`);
}

/** A folder whose node_modules have the package. */
export function npmFolder(name: string, version: string): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "hyperscale", "servers", `npm-${name}-${version}`);
  const isThere = (): boolean => existsSync(join(folder, "node_modules", name, "package.json"));
  if (isThere()) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", `${name}@${version}`];
  spawnSync("npm", words, { cwd: folder, stdio: "ignore", timeout: FETCH_MS_MAX });
  if (isThere()) return folder;
  throw new Unavailable(`the package ${name} cannot be fetched here`);
}

/** A case with its own server, which stops with it. */
export function withServer(
  program: string,
  debian: string,
  run: (program: Program, server: RealServer) => Promise<string>,
): () => Promise<string> {
  return () => withFolder((server) => run(programOf(program, debian), server));
}

export async function withFolder(run: (server: RealServer) => Promise<string>): Promise<string> {
  const server = new RealServer();
  try {
    return await run(server);
  } finally {
    await server.stop();
  }
}

export class RealServer {
  /** Data folder; removed when the server is stopped. */
  readonly folder = mkdtempSync(join(tmpdir(), "hyperscale-reporter-"));
  #child: ChildProcess | undefined;
  #said = "";
  readonly #kill = (): void => void this.#child?.kill("SIGKILL");

  /** `ready`: an address that must answer, or a port that must take connections. */
  async start(
    { environment, path }: Program,
    args: readonly string[],
    ready: string | number,
  ): Promise<void> {
    const options = { cwd: this.folder, env: environment } as const;
    this.#child = spawn(path, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const child = this.#child;
    process.once("exit", this.#kill);
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (data) => {
        this.#said = (this.#said + String(data)).slice(-2_000);
      });
    const until = Date.now() + READY_MS_MAX;
    while (Date.now() < until && child.exitCode === null) {
      if (await isReady(ready)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`${path} does not serve ${ready}: ${this.#said}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    process.off("exit", this.#kill);
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function isReady(ready: string | number): Promise<boolean> {
  if (typeof ready === "string") return (await fetch(ready).catch(() => undefined))?.ok === true;
  return new Promise((resolve) => {
    const socket = connect(ready, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Output of a command; throws when it fails. */
export function output({ environment, path }: Program, ...args: readonly string[]): string {
  const options = { encoding: "utf8", env: environment, maxBuffer: 64 * 1_024 * 1_024 } as const;
  const done = spawnSync(path, args, options);
  if (done.status === 0) return done.stdout;
  throw new Error(`${path} ${args.join(" ")}: ${done.stderr || done.error?.message}`);
}

/** Programs of the machine itself. */
export function own(path: string, more: NodeJS.ProcessEnv = {}): Program {
  return { path, environment: { ...process.env, ...more } };
}
