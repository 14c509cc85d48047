/**
 * The nodes of a cluster with the configurations that `hyperscale cluster up` writes, each as its own process that can
 * be killed, stopped and restarted from its data.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type ClusterShape,
  type NodePlan,
  prepareNodes,
} from "../../../src/cli/commands/cluster-plan.ts";
import { ClusterClient } from "../../../src/client/client.ts";
import type { Site, Sites } from "./sites.ts";

const cli = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
/** A ceiling for a hang. */
const READY_MS_MAX = 120_000;
/** Processes that survive SIGTERM for this long are killed. */
const END_MS_MAX = 30_000;

/** Log events of a node that declares another lost. */
const LOSS = /"event":"(worker\.lost|peer\.down|manager\.down)"/g;

interface Node extends NodePlan {
  readonly site: Site;
  child: ChildProcess | null;
  errors: string;
  losses: number;
}

export class Nodes {
  readonly dir: string;
  /** Where every node's log goes; null: nowhere. */
  readonly #logs: string | null;
  readonly #nodes: ReadonlyMap<string, Node>;

  private constructor(dir: string, nodes: ReadonlyMap<string, Node>, logs: string | null) {
    this.dir = dir;
    this.#logs = logs;
    this.#nodes = nodes;
    if (logs !== null) mkdirSync(logs, { recursive: true });
  }

  /** `prepared` sees every node's data directory before anything starts. */
  static async start(
    shape: ClusterShape,
    sites: Sites,
    prepared: (plan: NodePlan, dataDir: string) => void = () => undefined,
    logs: string | null = null,
  ): Promise<Nodes> {
    const nodes = await Nodes.prepare(shape, sites, prepared, logs);
    await nodes.startAll();
    return nodes;
  }

  /** None of them runs. */
  static async prepare(
    shape: ClusterShape,
    sites: Sites,
    prepared: (plan: NodePlan, dataDir: string) => void = () => undefined,
    logs: string | null = null,
  ): Promise<Nodes> {
    const dir = mkdtempSync(join(tmpdir(), "hyperscale-chaos-"));
    const plans = await prepareNodes(dir, shape);
    for (const plan of plans) prepared(plan, join(dir, plan.name));
    const placed = plans.map((plan) => ({ plan, site: sites.of(plan.datacenter) }));
    // Every node gets the addresses of its peers; those on another machine have another host.
    for (const { plan } of placed) {
      const file = join(dir, `${plan.name}.json`);
      let text = readFileSync(file, "utf8");
      for (const { plan: other, site } of placed)
        if (other.address !== null)
          text = text.replaceAll(`"${other.address}"`, `"${hosted(other.address, site)}"`);
      writeFileSync(file, text);
    }
    const nodes = new Map<string, Node>();
    for (const { plan, site } of placed) {
      const address = plan.address === null ? null : hosted(plan.address, site);
      nodes.set(plan.name, { ...plan, address, site, child: null, errors: "", losses: 0 });
    }
    return new Nodes(dir, nodes, logs);
  }

  /** All that do not run. */
  async startAll(): Promise<void> {
    const names = this.names().filter((name) => !this.isAlive(name));
    await Promise.all(names.map((name) => this.start(name)));
  }

  names(role?: NodePlan["role"], datacenter?: string): readonly string[] {
    return [...this.#nodes.values()]
      .filter((one) => role === undefined || one.role === role)
      .filter((one) => datacenter === undefined || one.datacenter === datacenter)
      .map(({ name }) => name);
  }

  /** Resolves when it says that it is ready. */
  async start(name: string): Promise<void> {
    const node = this.#node(name);
    const [command = "", ...args] = [...node.site.enter, process.execPath, cli, ...node.command];
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    node.child = child;
    node.errors = "";
    child.stderr?.on("data", (text) => {
      node.errors = (node.errors + String(text)).slice(-4_000);
      node.losses += String(text).match(LOSS)?.length ?? 0;
      if (this.#logs !== null) appendFileSync(join(this.#logs, `${name}.log`), text);
    });
    const late = setTimeout(() => child.kill("SIGKILL"), READY_MS_MAX);
    await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, "data"),
      once(child, "exit").then(([code, signal]) => {
        throw new Error(`${name} ended with ${signal ?? code}: ${node.errors.trim()}`);
      }),
    ]).finally(() => clearTimeout(late));
  }

  isAlive(name: string): boolean {
    const { child } = this.#node(name);
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  /** How often any node has said that another is lost. */
  get losses(): number {
    return [...this.#nodes.values()].reduce((sum, { losses }) => sum + losses, 0);
  }

  /** Standard error of a node. */
  errorsOf(name: string): string {
    return this.#node(name).errors;
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.#node(name).child?.kill(signal);
  }

  async kill(names: readonly string[]): Promise<void> {
    const gone = names.map((name) => exited(this.#node(name).child));
    for (const name of names) this.signal(name, "SIGKILL");
    await Promise.all(gone);
  }

  /** As an operator ends them: each may hand over what it does. */
  async terminate(names: readonly string[]): Promise<void> {
    const gone = names.map((name) => exited(this.#node(name).child));
    for (const name of names) this.signal(name, "SIGTERM");
    const late = setTimeout(() => {
      for (const name of names) this.signal(name, "SIGKILL");
    }, END_MS_MAX);
    await Promise.all(gone);
    clearTimeout(late);
  }

  pidOf(name: string): number {
    return this.#node(name).child?.pid ?? 0;
  }

  async end(): Promise<void> {
    for (const role of ["worker", "manager", "gate"] as const) {
      const names = this.names(role).filter((name) => this.isAlive(name));
      for (const name of names) this.signal(name, "SIGCONT");
      await this.terminate(names);
    }
  }

  /** With what is left of them. */
  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** A client of the gates, or of the managers of one datacenter. */
  client(datacenter = ""): ClusterClient {
    const secret = readFileSync(this.credentials, "utf8").trim();
    return ClusterClient.open({ managers: this.addresses(datacenter), secret });
  }

  get credentials(): string {
    return join(this.dir, "client.key");
  }

  addressOf(name: string): string {
    return this.#node(name).address ?? "";
  }

  addresses(datacenter = ""): readonly string[] {
    return [...this.#nodes.values()]
      .filter((one) => one.datacenter === datacenter)
      .flatMap(({ address }) => address ?? []);
  }

  /** Every process below one node. */
  below(name: string): readonly number[] {
    const parents = parentsOfAll();
    const found = [this.pidOf(name)];
    for (const at of found)
      found.push(...[...parents].flatMap(([pid, parent]) => (parent === at ? [pid] : [])));
    return found.slice(1);
  }

  /** Every process below a node, by number: the executor cores of workers. */
  descendants(): ReadonlySet<number> {
    const parents = parentsOfAll();
    const nodes = new Set(
      [...this.#nodes.values()].flatMap(({ child }) => (child?.pid === undefined ? [] : child.pid)),
    );
    const isBelow = (pid: number): boolean => {
      for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at))
        if (nodes.has(at)) return true;
      return false;
    };
    return new Set([...parents.keys()].filter((pid) => !nodes.has(pid) && isBelow(pid)));
  }

  #node(name: string): Node {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }
}

/** Processes of `before` that are alive and belong to no node any more. */
export function orphans(before: ReadonlySet<number>, now: ReadonlySet<number>): readonly number[] {
  const alive = parentsOfAll();
  return [...before].filter((pid) => alive.has(pid) && !now.has(pid));
}

function hosted(address: string, { host }: Site): string {
  return `${host}:${address.slice(address.lastIndexOf(":") + 1)}`;
}

async function exited(child: ChildProcess | null): Promise<void> {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return;
  await once(child, "exit");
}

/** By process: its parent; those that have ended and wait for theirs are left out. */
function parentsOfAll(): ReadonlyMap<number, number> {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    try {
      const text = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [state = "", parent = ""] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      if (state !== "Z") parents.set(pid, Number(parent));
    } catch {
      // The process has exited meanwhile.
    }
  }
  return parents;
}
