/**
 * `hyperscale cluster`: a whole cluster on this machine, every node a process of its own on the loopback. Its
 * secrets, configurations and data are in one directory; what it has started ends with it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { DEMO_PORT } from "../../demo/server.ts";
import { EXIT_FAILURE } from "../../host/exit-codes.ts";
import { allowFirstStart } from "../../ledger/founding.ts";
import { formatAddress } from "../../wire/address.ts";
import { listed } from "../option-values.ts";
import { complain } from "../print.ts";
import { CLUSTER_DIR, CLUSTER_FILE, readLocalCluster, withCluster } from "./cluster-place.ts";
import { runCommand, UsageError } from "./ledger-target.ts";

const HOST = "127.0.0.1";
/** Of the interfaces, above the port of the first manager. */
const MANAGER_API_ABOVE = 100;
const WORKER_API_ABOVE = 200;
const MANAGERS_MAX = 7;
const WORKERS_MAX = 99;
/** A node that has not said that it is ready by then has failed. */
const READY_MS_MAX = 60_000;
/** What does not end by itself by then is killed. */
const END_MS_MAX = 15_000;
/** How long `down` waits for it. */
const DOWN_MS_MAX = END_MS_MAX + 5_000;

interface UpFlags {
  readonly gates: number;
  readonly datacenters: readonly string[];
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly dir: string;
  readonly port: number;
  readonly demoTarget?: true;
  readonly json?: true;
}

interface NodePlan {
  readonly name: string;
  readonly role: "manager" | "worker" | "target";
  readonly datacenter: string;
  readonly address: string | null;
  readonly api: string | null;
  readonly command: readonly string[];
}

interface Started extends NodePlan {
  readonly child: ChildProcess;
}

const HELP = `
Examples:
  $ hyperscale cluster up --demo-target               one manager, two workers, something to load
  $ hyperscale submit examples/quickstart.ts          in another terminal
  $ hyperscale cluster up --managers 3 --workers 4    a manager may die
`;

export function registerCluster(program: Command): void {
  const cluster = program
    .command("cluster")
    .description("a cluster on this machine: managers and workers, each a process of its own")
    .addHelpText("after", HELP);
  cluster
    .command("up")
    .description("start a cluster, stay in the foreground, end it with Ctrl-C")
    .option("--gates <n>", "0: clients talk to managers", Number, 0)
    .option("--datacenters <names>", "its name", listed)
    .option("--managers <n>", "one, three or five", Number, 1)
    .option("--workers <n>", "how many", Number, 2)
    .option("--cores <n>", "CPU cores of each worker", Number, 1)
    .option("--dir <dir>", "secrets, configurations and data", CLUSTER_DIR)
    .option("--port <n>", "of the first manager; the others follow", Number, 7_700)
    .option("--demo-target", `also start the bundled server to load, on port ${DEMO_PORT}`)
    .option("--json", "one JSON line when it is ready, and one per change")
    .action((flags: UpFlags) => runCommand(() => up(flags), "cluster up"));
  cluster
    .command("down")
    .description("end what cluster up has started")
    .option("--dir <dir>", "its directory", CLUSTER_DIR)
    .action(({ dir }: { readonly dir: string }) => runCommand(() => down(dir), "cluster down"));
  cluster
    .command("status")
    .description("the nodes of the local cluster")
    .option("--dir <dir>", "its directory", CLUSTER_DIR)
    .action(({ dir }: { readonly dir: string }) =>
      withCluster(
        "cluster status",
        { dir, cluster: "hyperscale", environment: "default" },
        async (client) => {
          for (const { cores, coresUsed, name, role, status } of await client.nodes())
            process.stdout.write(
              `${name.padEnd(12)} ${role.padEnd(8)} ${status.padEnd(9)} ${coresUsed}/${cores} cores\n`,
            );
        },
      ),
    );
}

async function up(flags: UpFlags): Promise<void> {
  checkFlags(flags);
  const dir = resolve(flags.dir);
  const running = readLocalCluster(dir);
  if (running !== null && isAlive(running.pid))
    throw new UsageError(`${flags.dir} holds a cluster that runs (pid ${running.pid})`);
  const plans = await prepare(dir, flags);
  const local = new LocalNodes(flags.json === true);
  process.on("SIGINT", () => local.end());
  process.on("SIGTERM", () => local.end());
  const managers = plans.flatMap(({ address, role }) =>
    role === "manager" && address !== null ? [address] : [],
  );
  try {
    await local.start(plans);
  } catch (error) {
    complain(`hyperscale cluster up: ${error instanceof Error ? error.message : String(error)}`);
    await local.end();
    process.exitCode = EXIT_FAILURE;
    return;
  }
  const file = join(dir, CLUSTER_FILE);
  const credentials = join(dir, "client.key");
  await writeFile(file, `${JSON.stringify({ pid: process.pid, managers, credentials })}\n`);
  local.announce(dir, managers);
  await local.over;
  await rm(file, { force: true });
}

function checkFlags({ cores, datacenters = [], gates, managers, port, workers }: UpFlags): void {
  const whole = (flag: string, value: number, least: number, most: number): void => {
    if (!Number.isInteger(value) || value < least || value > most)
      throw new UsageError(`${flag}: a whole number from ${least} to ${most}`);
  };
  if (gates !== 0) throw new UsageError("--gates: only 0 for now, clients talk to managers");
  if (datacenters.length > 1) throw new UsageError("--datacenters: only one without gates");
  whole("--managers", managers, 1, MANAGERS_MAX);
  if (managers % 2 === 0) throw new UsageError("--managers: an odd number, as 1, 3 or 5");
  whole("--workers", workers, 0, WORKERS_MAX);
  whole("--cores", cores, 1, 1_024);
  whole("--port", port, 1, 65_535 - WORKER_API_ABOVE - WORKERS_MAX);
}

/** Secrets are made once; a directory that was used goes on with its data. */
async function prepare(dir: string, flags: UpFlags): Promise<readonly NodePlan[]> {
  const [datacenter = "dc1"] = flags.datacenters ?? [];
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const name of ["cluster.key", "client.key"]) {
    const path = join(dir, name);
    const secret = `${randomBytes(32).toString("base64")}\n`;
    if (!existsSync(path)) await writeFile(path, secret, { mode: 0o600, flag: "wx" });
  }
  const managers = Array.from({ length: flags.managers }, (_, at) => ({
    name: `m${at + 1}`,
    address: formatAddress(HOST, flags.port + at),
    api: formatAddress(HOST, flags.port + MANAGER_API_ABOVE + at),
  }));
  const plans: NodePlan[] = [];
  const plan = async (node: Omit<NodePlan, "command" | "datacenter">, config: object) => {
    const file = join(dir, `${node.name}.json`);
    await writeFile(
      file,
      `${JSON.stringify({ name: node.name, datacenter, ...config }, null, 2)}\n`,
    );
    plans.push({ ...node, datacenter, command: [node.role, "start", "--config", file] });
  };
  for (const { address, api, name } of managers) {
    const peers = managers
      .filter((other) => other.name !== name)
      .map((other) => ({ name: other.name, address: other.address }));
    const secrets = { secretFile: "cluster.key", clientSecretFile: "client.key" };
    await plan(
      { name, role: "manager", address, api },
      { bind: address, api, peers, dataDir: name, ...secrets },
    );
    if (!existsSync(join(dir, name, "wal"))) {
      const problem = await allowFirstStart(join(dir, name), "found");
      if (problem !== null) throw new UsageError(problem);
    }
  }
  for (let at = 0; at < flags.workers; at++) {
    const name = `w${at + 1}`;
    const api = formatAddress(HOST, flags.port + WORKER_API_ABOVE + at);
    await plan(
      { name, role: "worker", address: null, api },
      {
        managers: managers.map((one) => ({ name: one.name, address: one.address })),
        ...{ cores: flags.cores, api, dataDir: name, secretFile: "cluster.key", drainSeconds: 5 },
      },
    );
  }
  if (flags.demoTarget === true) {
    const address = formatAddress(HOST, DEMO_PORT);
    const command = ["demo-target", "--json"];
    plans.push({ name: "target", role: "target", datacenter, address, api: null, command });
  }
  return plans;
}

/** The processes of a cluster, from the first to the last. */
class LocalNodes {
  readonly #json: boolean;
  readonly #started: Started[] = [];
  #ending = false;
  #onOver: () => void = () => undefined;
  /** Resolves when all have ended after `end`. */
  readonly over = new Promise<void>((resolve) => {
    this.#onOver = resolve;
  });

  constructor(json: boolean) {
    this.#json = json;
  }

  /** All at once: managers find each other, workers find managers. Rejects when one does not become ready. */
  async start(plans: readonly NodePlan[]): Promise<void> {
    await Promise.all(plans.map((plan) => this.#start(plan)));
  }

  announce(dir: string, managers: readonly string[]): void {
    const processes = this.#started.map(({ address, api, child, datacenter, name, role }) => ({
      ...{ name, role, datacenter, pid: child.pid ?? 0, address, api },
    }));
    const ready = { event: "ready", dir, gates: [], managers, dashboard: null, processes };
    if (this.#json) {
      process.stdout.write(`${JSON.stringify(ready)}\n`);
      return;
    }
    for (const { address, api, name, pid, role } of processes)
      process.stdout.write(
        `${name.padEnd(8)} ${role.padEnd(8)} pid ${String(pid).padEnd(8)} ${(address ?? "").padEnd(16)} ${api ?? ""}\n`,
      );
    process.stdout.write(`ready: hyperscale submit FILE --dir ${dir}; Ctrl-C ends the cluster\n`);
  }

  /** Workers first, so that managers hear how their jobs end; what does not end is killed. */
  async end(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const kill = setTimeout(() => this.#signal(this.#started, "SIGKILL"), END_MS_MAX);
    const of = (...roles: readonly string[]): Started[] =>
      this.#started.filter(({ role }) => roles.includes(role));
    for (const group of [of("worker", "target"), of("manager")]) {
      this.#signal(group, "SIGTERM");
      await Promise.all(group.map(({ child }) => ended(child)));
    }
    clearTimeout(kill);
    this.#onOver();
  }

  #signal(nodes: readonly Started[], signal: NodeJS.Signals): void {
    for (const { child } of nodes) if (child.exitCode === null) child.kill(signal);
  }

  #start(plan: NodePlan): Promise<void> {
    const [entry = ""] = process.argv.slice(1, 2);
    const child = spawn(process.execPath, [entry, ...plan.command], {
      stdio: ["ignore", "pipe", "pipe"],
      // Ctrl-C reaches the whole foreground group; this process says when each of them ends.
      detached: true,
    });
    const started: Started = { ...plan, child };
    this.#started.push(started);
    let errors = "";
    child.stderr?.on("data", (text) => {
      errors = (errors + String(text)).slice(-2_000);
    });
    return new Promise((resolveReady, reject) => {
      const late = setTimeout(
        () => reject(new Error(`${plan.name} is not ready after ${READY_MS_MAX / 1_000} s`)),
        READY_MS_MAX,
      );
      child.stdout?.once("data", () => {
        clearTimeout(late);
        resolveReady();
      });
      child.once("exit", (code, signal) => {
        clearTimeout(late);
        const how = signal ?? `exit code ${code}`;
        reject(new Error(`${plan.name} ended with ${how}: ${errors.trim().split("\n").at(-1)}`));
        this.#onExit(plan.name, how);
      });
    });
  }

  #onExit(name: string, how: string): void {
    if (this.#ending) return;
    if (this.#json) process.stdout.write(`${JSON.stringify({ event: "ended", name, how })}\n`);
    else process.stdout.write(`${name} ended: ${how}\n`);
  }
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolveEnded) => child.once("exit", () => resolveEnded()));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function down(dir: string): Promise<void> {
  const running = readLocalCluster(resolve(dir));
  if (running === null || !isAlive(running.pid)) {
    process.stdout.write(`no cluster runs in ${dir}\n`);
    return;
  }
  process.kill(running.pid, "SIGTERM");
  for (let waitedMs = 0; isAlive(running.pid); waitedMs += 100) {
    if (waitedMs > DOWN_MS_MAX) throw new UsageError(`pid ${running.pid} does not end`);
    await new Promise((resolveWait) => setTimeout(resolveWait, 100));
  }
  process.stdout.write(`the cluster in ${dir} has ended\n`);
}
