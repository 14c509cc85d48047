/**
 * Real servers for the reporters, from Debian's packages: downloaded and unpacked into a cache of this
 * checkout, never installed, and started on ports of 127.0.0.1 for one test. What cannot be fetched is
 * skipped by name.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../../.hyperscale/servers", import.meta.url));
const FETCH_MS_MAX = 300_000;
const READY_MS_MAX = 120_000;

/** The program of a package; undefined where it cannot be had. */
export function fetched(name: string, program: string): string | undefined {
  const place = join(CACHE, name);
  const path = join(place, program);
  if (existsSync(path)) return path;
  mkdirSync(place, { recursive: true });
  const options = { cwd: place, stdio: "ignore", timeout: FETCH_MS_MAX } as const;
  spawnSync("apt-get", ["download", name], options);
  for (const file of readdirSync(place).filter((one) => one.endsWith(".deb"))) {
    spawnSync("dpkg", ["-x", file, "."], options);
    rmSync(join(place, file));
  }
  return existsSync(path) ? path : undefined;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

export class RealServer {
  /** Its data; gone when it is stopped. */
  readonly folder = mkdtempSync(join(tmpdir(), "hyperscale-reporter-"));
  #child: ChildProcess | undefined;
  #said = "";

  async start(program: string, args: readonly string[], ready: string): Promise<void> {
    this.#child = spawn(program, args, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (data) => {
        this.#said = (this.#said + String(data)).slice(-2_000);
      });
    const until = Date.now() + READY_MS_MAX;
    while (Date.now() < until && this.#child.exitCode === null) {
      const answer = await fetch(ready).catch(() => undefined);
      if (answer?.ok === true) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`${program} does not serve ${ready}: ${this.#said}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
