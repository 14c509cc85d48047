/** Nodes for tests: in this process, or as processes of their own that can be killed and stopped. */

import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll } from "vitest";
import {
  builtinExecutors,
  defaultSettings,
  type Executors,
  type NodeOptions,
  QueueClient,
  QueueNode,
  type QueueSettings,
  type Role,
  silentLog,
} from "../../../src/queue/index.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { TestPostgres } from "./server.ts";

export const fastSettings: QueueSettings = {
  ...defaultSettings,
  leaderLeaseMs: 2_000,
  leaderRenewMs: 500,
  taskLeaseMs: 2_000,
  leaseCleanupMs: 500,
  pollIntervalMs: 500,
  heartbeatMs: 500,
  retryBaseMs: 20,
  gracePeriodMs: 2_000,
};

/** For tests that are not about leases: a starved machine must not change the leader under them. */
export const calmSettings: Partial<QueueSettings> = {
  leaderLeaseMs: defaultSettings.leaderLeaseMs,
  leaderRenewMs: defaultSettings.leaderRenewMs,
  taskLeaseMs: defaultSettings.taskLeaseMs,
};

interface TestNodeOptions {
  /** PostgreSQL; without it the embedded store of `dataDirectory`. */
  readonly database?: string;
  readonly dataDirectory?: string;
  readonly nodeId?: string;
  readonly token?: string;
  readonly scopedTokens?: NodeOptions["scopedTokens"];
  readonly tls?: NodeOptions["tls"];
  readonly role?: Role;
  readonly executors?: Executors;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly settings?: Partial<QueueSettings>;
  readonly log?: NodeOptions["log"];
}

let nodes = 0;

export function startNode(options: TestNodeOptions): Promise<QueueNode> {
  return QueueNode.start({
    nodeId: options.nodeId ?? `node-${++nodes}`,
    role: options.role ?? "auto",
    listen: { host: "127.0.0.1", port: 0 },
    databaseUrl: options.database,
    dataDirectory: options.dataDirectory ?? ".",
    token: options.token,
    scopedTokens: options.scopedTokens,
    tls: options.tls,
    executors: {
      ...builtinExecutors({
        commands: undefined,
        loadtest: { resultsDirectory: tmpdir(), workflows: undefined, bundles: true },
      }),
      ...options.executors,
    },
    capabilities: options.capabilities ?? {},
    settings: { ...fastSettings, ...options.settings },
    log: options.log ?? silentLog,
  });
}

/** The command as users have it: it starts in a third of the time that the sources take. */
export const PROGRAM = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

/** Runs `hyperscale queue …` to its end; rejects when it does not end with 0. */
export const runQueue = (
  ...args: readonly string[]
): Promise<{ readonly stdout: string; readonly stderr: string }> =>
  promisify(execFile)(process.execPath, [PROGRAM, "queue", ...args]);

/** A node in its own process. */
export class NodeProcess {
  readonly child: ChildProcess;
  readonly ready: Promise<{ readonly url: string; readonly role: string }>;
  stderr = "";

  /**
   * `access`: without a token, unless a test is about it. `group`: with all that it starts in a group of processes,
   * which can be killed like a machine.
   */
  constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    access: readonly string[] = ["--open"],
    group = false,
  ) {
    this.child = spawn(
      process.execPath,
      [PROGRAM, "queue", "start", "--listen", "127.0.0.1:0", ...access, ...args],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ...environment },
        detached: group,
      },
    );
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr = (this.stderr + text).slice(-20_000);
    });
    this.ready = new Promise((resolve, reject) => {
      let text = "";
      this.child.stdout?.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        const line = text.split("\n").find((one) => one.includes('"ready"'));
        if (line !== undefined) resolve(JSON.parse(line));
      });
      this.child.once("exit", (code, signal) =>
        reject(new Error(`the node ended with ${code ?? signal}: ${this.stderr.slice(-2_000)}`)),
      );
    });
    this.ready.catch(() => undefined);
  }

  get alive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    if (this.alive) this.child.kill(name);
  }

  /** Kills the node and everything it started, which has its own process groups. */
  async loseMachine(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    for (const pid of withDescendants(this.child.pid ?? 0)) process.kill(pid, "SIGKILL");
    await ended;
  }

  async end(name: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    if (!this.alive) return this.child.exitCode;
    const ended = new Promise<number | null>((resolve) => this.child.once("exit", resolve));
    this.child.kill(name);
    return ended;
  }
}

/** Parents first, so that none of them notices the end of a child. */
function withDescendants(root: number): number[] {
  const listed = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = listed
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const found = [root];
  for (const parent of found) for (const [pid = 0, of] of pairs) if (of === parent) found.push(pid);
  return found;
}

/** Fast leases for node processes, by the environment that operators use. */
export const fastEnvironment = {
  HYPERSCALE_LEADER_LEASE_SECONDS: "2",
  HYPERSCALE_LEADER_RENEW_SECONDS: "0.5",
  HYPERSCALE_LEASE_DURATION_SECONDS: "2",
  HYPERSCALE_LEASE_CLEANUP_INTERVAL_SECONDS: "0.5",
  HYPERSCALE_POLL_INTERVAL_SECONDS: "0.5",
  HYPERSCALE_HEARTBEAT_SECONDS: "0.5",
  HYPERSCALE_RETRY_BASE_SECONDS: "0.02",
} as const;

export async function eventually<Value>(
  what: string,
  look: () => Promise<Value | undefined | false>,
  withinMs = PATIENCE_MS,
): Promise<Value> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > deadline) throw new Error(`${what} did not happen within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A task is RUNNING when it is handed out; its worker reports the start a little later. */
export async function hasBegun(client: QueueClient, id: string): Promise<void> {
  await eventually("it began", async () =>
    (await client.events(id)).some((event) => event.event_type === "started"),
  );
}

type Kept = QueueNode | NodeProcess | QueueClient;

/** A server for one test file, and what its tests opened, ended with each of them. */
export function queueBench() {
  let server: TestPostgres;
  const open: Kept[] = [];
  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  // Nodes of one test must not hold connections, of which the server has 200, while the next runs.
  afterEach(async () => {
    await Promise.all(
      open.splice(0).map(async (one) => {
        if (one instanceof NodeProcess) await one.end();
        else if (one instanceof QueueClient) one.close();
        else await one.stop(0);
      }),
    );
  });
  afterAll(() => server.stop());
  const keep = <One extends Kept>(one: One): One => {
    open.push(one);
    return one;
  };
  return {
    keep,
    server: () => server,
    database: () => server.createQueue(),
    query: (url: string, text: string) => server.query(url, text),
    node: async (options: TestNodeOptions) => keep(await startNode(options)),
    client: (node: { readonly url: string }) => keep(new QueueClient(node.url)),
  };
}
