/**
 * `hyperscale cluster`: a whole cluster on this machine, every node a process of its own on the loopback. Its secrets,
 * configurations and data are in one directory; its processes end with it, or by `cluster down` when it was killed
 * itself.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { formatCounted } from "../../core/load/results/format.ts";
import { DEMO_PORT } from "../../demo/server.ts";
import { EXIT_FAILURE } from "../../host/exit-codes.ts";
import { makeFolder } from "../../host/folders.ts";
import { listed, repeated } from "../option-values.ts";
import { complain } from "../print.ts";
import {
  CLUSTER_DIR,
  CLUSTER_FILE,
  type LocalProcess,
  readLocalCluster,
  withCluster,
} from "./cluster-place.ts";
import { type ClusterShape, checkShape, type NodePlan, prepareNodes } from "./cluster-plan.ts";
import { printNodes } from "./jobs.ts";
import { runCommand, UsageError } from "./ledger-target.ts";

/** A node that is not ready by then has failed. */
const READY_MS_MAX = 60_000;
/** Processes that have not exited by then are killed. */
const END_MS_MAX = 15_000;
/** Ctrl-C under a package runner arrives twice: from the terminal, and forwarded. */
const SAME_PRESS_MS = 500;
/** In its directory: the output of a cluster in the background. */
const UP_LOG = "up.log";
/** How long `down` waits for it. */
const DOWN_MS_MAX = END_MS_MAX + 5_000;

interface UpFlags extends ClusterShape {
  readonly dir: string;
  readonly json?: true;
  readonly detach?: true;
}

interface Ready {
  readonly event: "ready";
  readonly dir: string;
  readonly gates: readonly string[];
  readonly managers: readonly string[];
  readonly dashboard: null;
  readonly processes: readonly (Pick<
    NodePlan,
    "name" | "role" | "datacenter" | "address" | "api"
  > & {
    readonly pid: number;
  })[];
}

interface Started extends NodePlan {
  readonly child: ChildProcess;
}

const HELP = `
Examples:
  $ hyperscale cluster up --demo-target               one gate, one manager, two workers, something to load
  $ hyperscale submit examples/quickstart.ts          in another terminal
  $ hyperscale cluster up --gates 3 --managers 3      a gate and a manager may die
  $ hyperscale cluster up --gates 3 --datacenters dc1,dc2 --managers 3 --workers 2
`;

export function registerCluster(program: Command): void {
  const cluster = program
    .command("cluster")
    .description(
      "a cluster on this machine: gates, managers and workers, each a process of its own",
    )
    .addHelpText("after", HELP);
  cluster
    .command("up")
    .description("start a cluster, stay in the foreground, end it with Ctrl-C")
    .option("--gates <n>", "one, three or five; 0: clients talk to managers", Number, 1)
    .option("--datacenters <names>", "separated by commas (dc1)", listed)
    .option("--managers <n>", "of each datacenter: one, three or five", Number, 1)
    .option("--workers <n>", "of each datacenter", Number, 2)
    .option("--cores <n>", "CPU cores of each worker", Number, 1)
    .option("--dir <dir>", "secrets, configurations and data", CLUSTER_DIR)
    .option("--port <n>", "of the first gate or manager; the others follow", Number, 7_700)
    .option(
      "--profile <name>",
      "dc, local (a busy machine) or wan: how long silence may last",
      "dc",
    )
    .option("--gate-report <name=target>", "gates send the figures of all jobs there", repeated)
    .option("--demo-target", `also start the bundled server to load, on port ${DEMO_PORT}`)
    .option("--json", "one JSON line when it is ready, and one per change")
    .option("--detach", "end when it is ready, and leave it running in the background")
    .action((flags: UpFlags) =>
      runCommand(() => (flags.detach === true ? upDetached(flags) : up(flags)), "cluster up"),
    );
  cluster
    .command("down")
    .description("end what cluster up has started")
    .option("--dir <dir>", "its directory", CLUSTER_DIR)
    .action(({ dir }: { readonly dir: string }) => runCommand(() => down(dir), "cluster down"));
  cluster
    .command("status")
    .description("the nodes of the local cluster")
    .option("--dir <dir>", "its directory", CLUSTER_DIR)
    .option("--json", "the answer as JSON")
    .action(({ dir, json }: { readonly dir: string; readonly json?: true }) =>
      withCluster(
        "cluster status",
        { dir, cluster: "hyperscale", environment: "default" },
        async (client) => printNodes(await client.nodes(), json === true),
      ),
    );
}

async function up(flags: UpFlags): Promise<void> {
  checkShape(flags);
  const dir = resolve(flags.dir);
  const running = readLocalCluster(dir);
  if (running !== null && isUp(running.pid))
    throw new UsageError(`${flags.dir} holds a cluster that runs (pid ${running.pid})`);
  if (running !== null && leftOf(running.processes).length > 0)
    throw new UsageError(
      `${flags.dir} holds nodes of a cluster up that was killed; "hyperscale cluster down" ends them`,
    );
  const plans = await prepareNodes(dir, flags).catch(unusable(flags.dir));
  const local = new LocalNodes(flags.json === true);
  const interrupt = (): Promise<void> => local.interrupt();
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const addressesOf = (wanted: NodePlan["role"]): readonly string[] =>
    plans.flatMap(({ address, role }) => (role === wanted && address !== null ? [address] : []));
  const [gates, managers] = [addressesOf("gate"), addressesOf("manager")];
  const file = join(dir, CLUSTER_FILE);
  const credentials = join(dir, "client.key");
  const starting = local.start(plans);
  const { processes } = local;
  const cluster = { pid: process.pid, gates, managers, credentials, processes };
  const kept = writeFile(file, `${JSON.stringify(cluster)}\n`);
  try {
    await Promise.all([starting, kept]);
    local.announce(dir, gates, managers);
    await local.over;
  } catch (error) {
    complain(`hyperscale cluster up: ${error instanceof Error ? error.message : String(error)}`);
    await local.end();
    process.exitCode = EXIT_FAILURE;
  }
  await rm(file, { force: true });
}

/** A directory that cannot be created or written is a usage error. */
function unusable(dir: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof UsageError || !(error instanceof Error) || !("syscall" in error))
      throw error;
    throw new UsageError(`--dir ${dir}: ${error.message}`);
  };
}

/** Runs the same command in the background; its output is a file of the directory. */
async function upDetached({ dir, json }: UpFlags): Promise<void> {
  const [entry = "", ...args] = process.argv.slice(1).filter((one) => one !== "--detach");
  await makeFolder(resolve(dir), { mode: 0o700 }).catch(unusable(dir));
  const path = join(resolve(dir), UP_LOG);
  const log = await open(path, "w", 0o600);
  const again = [entry, ...args, ...(json === true ? [] : ["--json"])];
  const stdio = ["ignore", log.fd, log.fd] as const;
  const child = spawn(process.execPath, again, { detached: true, stdio: [...stdio] });
  await log.close();
  const said = (): string => readFileSync(path, "utf8");
  const isKnown = (): boolean => said().includes("\n") || child.exitCode !== null;
  await isOver(READY_MS_MAX + END_MS_MAX, isKnown);
  const [line = ""] = said().split("\n");
  if (!line.startsWith("{")) {
    // The output begins with the name of the command, as the output of this one will.
    const why = said()
      .trim()
      .replace(/^hyperscale cluster up: /, "");
    throw new UsageError(why || "it has not become ready");
  }
  const ready = JSON.parse(line) as Ready;
  printReady(ready, json === true, `hyperscale cluster down --dir ${ready.dir} ends the cluster`);
  child.unref();
}

function printReady(ready: Ready, json: boolean, end: string): void {
  if (json) {
    process.stdout.write(`${JSON.stringify(ready)}\n`);
    return;
  }
  for (const { address, api, name, pid, role } of ready.processes)
    process.stdout.write(
      `${name.padEnd(8)} ${role.padEnd(8)} pid ${String(pid).padEnd(8)} ${(address ?? "").padEnd(16)} ${api ?? ""}\n`,
    );
  process.stdout.write(`ready: hyperscale submit FILE --dir ${ready.dir}; ${end}\n`);
}

/** Processes of a cluster, from the first to the last. */
class LocalNodes {
  readonly #json: boolean;
  readonly #started: Started[] = [];
  #announced = false;
  /** When its end began; null: it has not. */
  #endingSince: number | null = null;
  #onOver: () => void = () => undefined;
  /** Resolves when all have exited after `end`. */
  readonly over = new Promise<void>((resolve) => {
    this.#onOver = resolve;
  });

  constructor(json: boolean) {
    this.#json = json;
  }

  /** Starts all at once: nodes find each other. Rejects when one does not become ready. */
  async start(plans: readonly NodePlan[]): Promise<void> {
    await Promise.all(plans.map((plan) => this.#start(plan)));
  }

  /** Processes, for a later `cluster down` when this process cannot end them. */
  get processes(): readonly LocalProcess[] {
    return this.#started.map(({ child, command, name, role }) => {
      const mark = command.at(role === "target" ? 0 : -1) ?? "";
      return { name, role, pid: child.pid ?? 0, mark };
    });
  }

  announce(dir: string, gates: readonly string[], managers: readonly string[]): void {
    const processes = this.#started.map(({ address, api, child, datacenter, name, role }) => ({
      ...{ name, role, datacenter, pid: child.pid ?? 0, address, api },
    }));
    const ready = { event: "ready", dir, gates, managers, dashboard: null, processes } as const;
    this.#announced = true;
    printReady(ready, this.#json, "Ctrl-C ends the cluster");
  }

  /** The first one stops everything in order, the second at once. */
  async interrupt(): Promise<void> {
    const since = this.#endingSince;
    if (since === null) await this.end();
    else if (performance.now() - since > SAME_PRESS_MS) {
      this.#say({ event: "killing" }, "ending at once what is left");
      this.#signal(this.#started, "SIGKILL");
    }
  }

  /** Workers first, so that managers receive the ends of their jobs; processes that do not exit are killed. */
  async end(): Promise<void> {
    if (this.#endingSince !== null) return;
    this.#endingSince = performance.now();
    const left = this.#started.filter(({ child }) => isRunning(child)).length;
    const order = "workers first; Ctrl-C again ends them at once";
    this.#say({ event: "ending", nodes: left }, `ending ${formatCounted(left, "node")}, ${order}`);
    const kill = setTimeout(() => this.#signal(this.#started, "SIGKILL"), END_MS_MAX);
    const of = (...roles: readonly string[]): Started[] =>
      this.#started.filter(({ role }) => roles.includes(role));
    for (const group of [of("worker", "target"), of("manager"), of("gate")]) {
      this.#signal(group, "SIGTERM");
      await Promise.all(group.map(({ child }) => ended(child)));
    }
    clearTimeout(kill);
    this.#say({ event: "over" }, "the cluster has ended");
    this.#onOver();
  }

  /** The command's error reports a cluster that was never ready. */
  #say(event: object, text: string): void {
    if (this.#announced) process.stdout.write(`${this.#json ? JSON.stringify(event) : text}\n`);
  }

  #signal(nodes: readonly Started[], signal: NodeJS.Signals): void {
    for (const { child } of nodes) if (isRunning(child)) child.kill(signal);
  }

  #start(plan: NodePlan): Promise<void> {
    const [entry = ""] = process.argv.slice(1, 2);
    const child = spawn(process.execPath, [entry, ...plan.command], {
      stdio: ["ignore", "pipe", "pipe"],
      // Ctrl-C reaches the whole foreground group; this process decides when each of them ends.
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
        reject(new Error(`${plan.name} ended with ${how}: ${exitReason(plan.role, errors)}`));
        this.#say({ event: "ended", name: plan.name, how }, `${plan.name} ended: ${how}`);
      });
    });
  }
}

/** A node logs before its last output; the target has only the latter, the cause first and then its own advice. */
function exitReason(role: string, errors: string): string {
  const lines = errors.trim().split("\n");
  return lines.at(role === "target" ? 0 : -1) ?? "";
}

function ended(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return Promise.resolve();
  return new Promise((resolveEnded) => child.once("exit", () => resolveEnded()));
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Whether the process that started a cluster is alive; its pid may have been reused. */
function isUp(pid: number): boolean {
  return leftOf([{ name: "up", role: "up", pid, mark: "cluster" }]).length > 0;
}

/** Processes that are still alive, and the same as before. */
function leftOf(processes: readonly LocalProcess[]): readonly LocalProcess[] {
  return processes.filter(({ mark, pid }) => {
    if (!isAlive(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(mark);
    } catch {
      // Not every system reports it.
      return true;
    }
  });
}

async function down(dir: string): Promise<void> {
  const running = readLocalCluster(resolve(dir));
  if (running === null) {
    process.stdout.write(`no cluster runs in ${dir}\n`);
    return;
  }
  const { pid, processes } = running;
  if (isUp(pid)) {
    process.kill(pid, "SIGTERM");
    if (!(await isOver(DOWN_MS_MAX, () => !isUp(pid))))
      throw new UsageError(`pid ${pid} does not end`);
  } else await endLeft(processes);
  await rm(join(resolve(dir), CLUSTER_FILE), { force: true });
  process.stdout.write(`the cluster in ${dir} has ended\n`);
}

/** Stops what a killed `cluster up` left running, in its order. */
async function endLeft(processes: readonly LocalProcess[]): Promise<void> {
  for (const isManager of [false, true]) {
    const group = processes.filter(({ role }) => (role === "manager") === isManager);
    for (const { pid } of leftOf(group)) process.kill(pid, "SIGTERM");
    await isOver(END_MS_MAX, () => leftOf(group).length === 0);
    for (const { pid } of leftOf(group)) process.kill(pid, "SIGKILL");
  }
}

async function isOver(msMax: number, condition: () => boolean): Promise<boolean> {
  for (let waitedMs = 0; !condition(); waitedMs += 100) {
    if (waitedMs > msMax) return false;
    await new Promise((resolveWait) => setTimeout(resolveWait, 100));
  }
  return true;
}
