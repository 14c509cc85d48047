/** A cluster of processes on the loopback, as `hyperscale cluster up` starts it, and commands against it. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterClient } from "../../../src/client/client.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const cli = join(root, "bin", "hyperscale.js");
/** A ceiling for a hang, not a judgement. */
export const MS_MAX = 540_000;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface StartedNode {
  readonly name: string;
  readonly role: string;
  readonly pid: number;
  readonly address: string | null;
  readonly api: string | null;
}

interface Ready {
  readonly processes: readonly StartedNode[];
  readonly gates: readonly string[];
  readonly managers: readonly string[];
}

export class LocalCluster {
  readonly dir: string;
  readonly up: ChildProcess;
  readonly ready: Ready;
  readonly #restarted = new Map<string, ChildProcess>();

  private constructor(dir: string, up: ChildProcess, ready: Ready) {
    this.dir = dir;
    this.up = up;
    this.ready = ready;
  }

  static async start(...flags: readonly string[]): Promise<LocalCluster> {
    return LocalCluster.#start(await freshFolder(), flags, {});
  }

  /** With what is in the directory from before. */
  static async startIn(dir: string, ...flags: readonly string[]): Promise<LocalCluster> {
    return LocalCluster.#start(dir, flags, {});
  }

  /** Nodes with these variables. */
  static async startWith(
    env: Readonly<Record<string, string>>,
    ...flags: readonly string[]
  ): Promise<LocalCluster> {
    return LocalCluster.#start(await freshFolder(), flags, env);
  }

  static async #start(
    dir: string,
    flags: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<LocalCluster> {
    const port = String(await freePort());
    const up = start(["cluster", "up", "--dir", dir, "--port", port, "--json", ...flags], env);
    const errors = textOf(up.stderr);
    const line = await Promise.race([
      once(up.stdout as NodeJS.ReadableStream, "data").then(([text]) => String(text)),
      once(up, "close").then(() => Promise.reject(new Error(errors()))),
    ]);
    return new LocalCluster(dir, up, JSON.parse(line));
  }

  /**
   * Kills everything, whatever happened before: a graceful stop takes long where nodes are lost, and is tested in
   * `up.slow.test.ts`.
   */
  async stop(): Promise<void> {
    if (this.up.exitCode === null && this.up.signalCode === null) {
      this.up.kill("SIGKILL");
      await once(this.up, "exit");
    }
    for (const child of this.#restarted.values()) child.kill("SIGKILL");
    for (const { pid } of this.left()) process.kill(pid, "SIGKILL");
    // Executor cores end with their worker; what they write until then would be in the way.
    await until(async () => (this.left().length === 0 ? true : null));
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
  }

  node(name: string): StartedNode {
    const node = this.ready.processes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  /** Code and body of a node's `/readyz`. */
  async readiness(name: string): Promise<readonly [number, unknown]> {
    const response = await fetch(`http://${this.node(name).api}/readyz`);
    return [response.status, await response.json()];
  }

  /** Returns when the process of a node has exited. */
  async end(name: string, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const again = this.#restarted.get(name);
    if (again !== undefined) {
      const exited = once(again, "exit");
      again.kill(signal);
      await exited;
      return;
    }
    const { pid } = this.node(name);
    process.kill(pid, signal);
    await until(async () => (isAlive(pid) ? null : true));
  }

  /** Restarts a dead node from its configuration, and returns when it is up. */
  async startAgain(name: string): Promise<void> {
    const config = join(this.dir, `${name}.json`);
    const child = start([this.node(name).role, "start", "--config", config]);
    this.#restarted.set(name, child);
    child.stderr?.resume();
    await once(child.stdout as NodeJS.ReadableStream, "data");
  }

  /** Nodes that still live. */
  left(): readonly StartedNode[] {
    return this.ready.processes.filter(({ pid }) => isAlive(pid));
  }

  /** A command against the whole cluster. */
  command(...args: readonly string[]): Promise<Ended> {
    return command(...args, "--dir", this.dir);
  }

  /**
   * A client in this process of these nodes, or of all gates, or of all managers where there are no gates. Polling
   * with commands would start a process each time.
   */
  async client(...nodes: readonly string[]): Promise<ClusterClient> {
    const secret = (await readFile(join(this.dir, "client.key"), "utf8")).trim();
    const { gates, managers } = this.ready;
    const all = gates.length > 0 ? gates : managers;
    const named = nodes.map((name) => this.node(name).address ?? "");
    return ClusterClient.open({ managers: named.length > 0 ? named : all, secret });
  }

  /** A command that knows one manager only. */
  at(manager: string, ...args: readonly string[]): Promise<Ended> {
    return command(...args, ...this.placeOf(manager));
  }

  placeOf(manager: string): readonly string[] {
    const { address } = this.node(manager);
    return ["--manager", address ?? "", "--credentials", join(this.dir, "client.key")];
  }
}

export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  const stdio = ["ignore", "pipe", "pipe"] as const;
  return spawn(process.execPath, [cli, ...args], {
    ...{ cwd: root, stdio: [...stdio], env: { ...process.env, ...env } },
  });
}

function freshFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "hyperscale-cluster-"));
}

function command(...args: readonly string[]): Promise<Ended> {
  return ended(start(args));
}

export async function ended(child: ChildProcess): Promise<Ended> {
  const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: stdout(), stderr: stderr() };
}

function textOf(stream: NodeJS.ReadableStream | null): () => string {
  let text = "";
  stream?.on("data", (part) => {
    text += String(part);
  });
  return () => text;
}

/** A zombie is not alive; only Linux shows the difference. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Asks until it is so; the test's own ceiling ends it. */
export async function until<Value>(ask: () => Promise<Value | null>): Promise<Value> {
  for (;;) {
    const value = await ask();
    if (value !== null) return value;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** A port with enough free room above it, as far as can be known, below those that the system gives to clients. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  const port = typeof address === "object" && address !== null ? address.port : 20_000;
  return 20_000 + (port % 12_000);
}
