/**
 * A ledger of real processes on loopback addresses of its own: started from configuration files as a person would,
 * killed by their ids, and always gone at the end.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { tokenFor } from "../../src/host/control/token.ts";
import { allowFirstStart, type FirstStart } from "../../src/ledger/founding.ts";

const BIN = fileURLToPath(new URL("../../bin/hyperscale.js", import.meta.url));
const REGIONS = ["use1", "euw1", "apse", "usw2", "euc1"];
const PEER_PORT = 7_101;
const API_PORT = 7_201;

export interface NodePlace {
  readonly name: string;
  readonly region: string;
  readonly bind: string;
  readonly api: string;
}

interface ClusterOptions {
  readonly nodes: number;
  readonly leaseMs: number;
  /** The address that `from` uses for `to`, if a proxy is between them. */
  readonly addressOf?: (from: NodePlace, to: NodePlace) => string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: (place: NodePlace) => Readonly<Record<string, string>>;
  readonly nodeArgs?: (place: NodePlace) => readonly string[];
  readonly dir?: string;
}

export async function until(
  what: string,
  msMax: number,
  met: () => boolean | Promise<boolean>,
): Promise<number> {
  const since = performance.now();
  while (!(await met())) {
    if (performance.now() - since > msMax) throw new Error(`not within ${msMax} ms: ${what}`);
    await pause(20);
  }
  return performance.now() - since;
}

class NodeProcess {
  readonly place: NodePlace;
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly events: { readonly event: string; readonly [field: string]: unknown }[] = [];
  errors = "";

  constructor(place: NodePlace, child: ChildProcess, logFile: string) {
    this.place = place;
    this.child = child;
    this.ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.events.push(JSON.parse(line));
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.errors = (this.errors + text).slice(-1_000_000);
      appendFileSync(logFile, text);
    });
  }

  get alive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  get ready(): boolean {
    return this.events.some(({ event }) => event === "ready");
  }

  /** CPU used so far, user and system. */
  get cpuMs(): number {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.alive) this.child.kill(signal);
  }
}

export class LedgerCluster {
  readonly dir: string;
  readonly places: readonly NodePlace[];
  readonly #options: ClusterOptions;
  readonly #running = new Map<string, NodeProcess>();

  private constructor(dir: string, options: ClusterOptions, places: readonly NodePlace[]) {
    this.dir = dir;
    this.#options = options;
    this.places = places;
  }

  /** Writes configurations; starts nothing. */
  static async prepare(options: ClusterOptions): Promise<LedgerCluster> {
    const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "hyperscale-ledger-")));
    mkdirSync(dir, { recursive: true });
    // Addresses of our own: other tests on this machine have theirs.
    const net = `127.${20 + (process.pid % 200)}.${randomBytes(1)[0]}`;
    const places = Array.from({ length: options.nodes }, (_, at) => ({
      name: `n${at + 1}`,
      region: REGIONS[at] ?? "use1",
      bind: `${net}.${at + 1}:${PEER_PORT}`,
      api: `${net}.${at + 1}:${API_PORT}`,
    }));
    const cluster = new LedgerCluster(dir, options, places);
    writeFileSync(join(dir, "cluster.key"), `${randomBytes(32).toString("base64")}\n`);
    for (const place of places) {
      cluster.configure(place.name, {});
      await cluster.allow(place.name, "found");
    }
    return cluster;
  }

  place(name: string): NodePlace {
    const place = this.places.find((one) => one.name === name);
    if (place === undefined) throw new Error(`no node ${name}`);
    return place;
  }

  /** Token of the interface at this address, once its node has run. */
  tokenAt(api: string): { readonly token?: string } {
    const token = tokenFor({ api, dir: this.dir });
    return token === undefined ? {} : { token };
  }

  async allow(name: string, way: FirstStart): Promise<void> {
    const problem = await allowFirstStart(join(this.dir, name), way);
    if (problem !== null) throw new Error(problem);
  }

  configFile(name: string): string {
    return join(this.dir, `${name}.json`);
  }

  /** Writes a node's configuration, with changes. */
  configure(name: string, changes: Readonly<Record<string, unknown>>): void {
    const { leaseMs, config, addressOf } = this.#options;
    const self = this.place(name);
    const peers = this.places
      .filter((one) => one.name !== name)
      .map((one) => ({
        name: one.name,
        region: one.region,
        address: addressOf?.(self, one) ?? one.bind,
      }));
    const { region, bind, api } = self;
    const base = { name, region, cluster: "test", bind, api, peers };
    const rest = { dataDir: name, secretFile: "cluster.key", leaseMs, idempotency: "development" };
    const text = JSON.stringify({ ...base, ...rest, ...config, ...changes }, null, 2);
    writeFileSync(this.configFile(name), text);
  }

  start(name: string, flags: readonly string[] = []): NodeProcess {
    const place = this.place(name);
    const { env, nodeArgs } = this.#options;
    const args = [
      ...(nodeArgs?.(place) ?? []),
      BIN,
      "ledger",
      "start",
      "--config",
      this.configFile(name),
      ...flags,
    ];
    const child = spawn(process.execPath, args, {
      cwd: this.dir,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env?.(place) },
    });
    const running = new NodeProcess(place, child, join(this.dir, `${name}.log`));
    this.#running.set(name, running);
    return running;
  }

  node(name: string): NodeProcess {
    const running = this.#running.get(name);
    if (running === undefined) throw new Error(`${name} was never started`);
    return running;
  }

  async startAll(): Promise<void> {
    for (const { name } of this.places) this.start(name);
    for (const { name } of this.places) await this.ready(name);
  }

  async ready(name: string, msMax = 240_000): Promise<void> {
    const running = this.node(name);
    await until(`${name} is ready`, msMax, () => {
      if (!running.alive) throw new Error(`${name} has ended: ${running.errors.slice(-2_000)}`);
      return running.ready;
    });
  }

  /** Terminates every process, and removes their files unless `keep` is set. */
  async stop(keep = false): Promise<void> {
    for (const running of this.#running.values()) {
      running.kill("SIGCONT");
      running.kill("SIGKILL");
      await running.ended;
    }
    if (!keep && existsSync(this.dir)) await rm(this.dir, { recursive: true, force: true });
  }
}
