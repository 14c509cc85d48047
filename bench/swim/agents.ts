/** Real agents as child processes, for measurements and for end-to-end tests. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { tokenFor } from "../../src/host/control/token.ts";

const bin = fileURLToPath(new URL("../../bin/hyperscale.js", import.meta.url));

interface EventLine {
  readonly event: string;
  readonly member?: string | null;
  readonly [field: string]: unknown;
}

export interface SeenEvent extends EventLine {
  /** When the line arrived here, on this process's monotonic clock. */
  readonly seenAt: number;
}

interface MemberLine {
  readonly name: string;
  readonly address: string;
  readonly state: string;
  readonly incarnation: number;
  readonly leader: boolean;
  readonly health: number | null;
  readonly rttMs: number | null;
  readonly confirmed: boolean;
}

/** One process of a cluster, ours or another's: the interface for measurements. */
export interface Peer {
  readonly name: string;
  readonly pid: number;
  readonly events: readonly SeenEvent[];
  kill(signal: NodeJS.Signals): void;
  ended: Promise<void>;
}

export class AgentProcess implements Peer {
  readonly name: string;
  readonly address: string;
  readonly api: string;
  readonly events: SeenEvent[] = [];
  readonly ended: Promise<void>;
  exitCode: number | null = null;
  stderr = "";
  readonly #child: ChildProcess;
  readonly #dataDir: string;

  /** `namespace`: the network namespace to run in; null for our own. */
  constructor(
    name: string,
    host: string,
    args: readonly string[],
    namespace: string | null = null,
  ) {
    this.name = name;
    this.address = `${host}:7946`;
    this.api = `${host}:7947`;
    this.#dataDir = args[args.indexOf("--data-dir") + 1] ?? "";
    const flags = ["--name", name, "--bind", this.address];
    // In another namespace it cannot be reached; there, events suffice.
    const api = namespace === null ? ["--api", this.api] : [];
    const inside = namespace === null ? [] : ["ip", "netns", "exec", namespace];
    const [command = "", ...rest0] = [...inside, process.execPath, bin, "agent"];
    this.#child = spawn(command, [...rest0, ...flags, ...api, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let rest = "";
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      const seenAt = performance.now();
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.events.push({ ...(JSON.parse(line) as EventLine), seenAt });
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      // The end has the reason; the beginning of a long log does not matter.
      this.stderr = (this.stderr + chunk.toString("utf8")).slice(-20_000);
    });
    this.ended = new Promise((resolve) => {
      this.#child.once("exit", (code) => {
        this.exitCode = code;
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal);
  }

  /** A request with the token that the agent generated. */
  async ask(
    path: string,
    options: Readonly<{ method?: string; body?: string }> = {},
  ): Promise<Response> {
    const token = tokenFor({ api: this.api, dir: this.#dataDir }) ?? "";
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return fetch(`http://${this.api}${path}`, { ...options, headers });
  }

  async members(): Promise<readonly MemberLine[]> {
    return (await (await this.ask("/v1/members")).json()) as MemberLine[];
  }

  async metric(name: string): Promise<number> {
    const response = await fetch(`http://${this.api}/metrics`);
    const text = await response.text();
    const lines = text.split("\n").filter((line) => line.startsWith(`hyperscale_agent_${name}`));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
  }

  sees(member: string, event: string, since: number): boolean {
    return this.events.some(
      (line) => line.event === event && line.member === member && line.seenAt >= since,
    );
  }

  /** Live members (suspects too), according to the lines on its standard output. */
  aliveByEvents(): ReadonlySet<string> {
    const alive = new Set([this.name]);
    for (const { event, member } of this.events) {
      if (typeof member !== "string") continue;
      if (event === "member-join" || event === "member-update") alive.add(member);
      if (event === "member-failed" || event === "member-leave") alive.delete(member);
    }
    return alive;
  }

  /** Members it reported as failed since then. */
  failuresSince(since: number): readonly string[] {
    return this.events
      .filter(({ event, seenAt }) => event === "member-failed" && seenAt >= since)
      .map(({ member }) => String(member));
  }
}

/** A loopback network that is most likely unused on this machine. */
export function freshNet(): string {
  const below = (bound: number): number => Math.floor(Math.random() * bound);
  return `${64 + below(128)}.${1 + below(250)}`;
}

interface ClusterOptions {
  /** Second and third part of the loopback addresses: 127.a.b.1, 127.a.b.2, … */
  readonly net: string;
  readonly size: number;
  readonly profile: string;
  readonly args?: readonly string[];
  /** Address of each member, when the cluster is spread over network namespaces. */
  readonly homes?: (place: number) => { readonly host: string; readonly namespace: string };
}

/** A cluster of agents on the loopback; members are n1, n2, … */
export class AgentCluster {
  readonly agents: AgentProcess[] = [];
  readonly directory = mkdtempSync(join(tmpdir(), "hyperscale-agents-"));
  readonly secretFile = join(this.directory, "secret");
  readonly #options: ClusterOptions;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const secret = Array.from({ length: 40 }, () => Math.floor(Math.random() * 36).toString(36));
    writeFileSync(this.secretFile, `${secret.join("")}\n`, { mode: 0o600 });
  }

  host(place: number): string {
    return this.#options.homes?.(place).host ?? `127.${this.#options.net}.${place}`;
  }

  /** Starts one member, replacing an earlier one if there was any. */
  start(place: number, args: readonly string[] = []): AgentProcess {
    const { profile, args: common = [] } = this.#options;
    const name = `n${place}`;
    // Two seeds each: the first member, and a neighbour, so that no single start is a bottleneck.
    const seeds = [1, Math.max(1, place - 1)].filter((seed) => seed !== place);
    const flags = [
      ...seeds.flatMap((seed) => ["--join", `${this.host(seed)}:7946`]),
      ...["--profile", profile, "--log-level", "warn"],
      ...["--secret-file", this.secretFile, "--data-dir", join(this.directory, name)],
      ...common,
      ...args,
    ];
    const namespace = this.#options.homes?.(place).namespace ?? null;
    const agent = new AgentProcess(name, this.host(place), flags, namespace);
    this.agents[place - 1] = agent;
    return agent;
  }

  /** In small groups: a machine with two cores cannot boot sixty processes at once. */
  async startAll(group = 8): Promise<void> {
    for (let place = 1; place <= this.#options.size; place++) {
      this.start(place);
      if (place % group === 0 || place === this.#options.size) {
        const fresh = this.agents.slice(0, place);
        await until(() => fresh.every(({ events }) => events.length > 0), 240_000, "agents start");
      }
    }
    await this.converged();
  }

  /** Every running agent sees every running agent alive and has reached it, and sees no others. */
  async converged(timeoutMs = 240_000): Promise<number> {
    const started = performance.now();
    await until(() => this.agrees(), timeoutMs, "the views agree");
    return performance.now() - started;
  }

  async agrees(): Promise<boolean> {
    const running = this.agents.filter((agent) => agent.running);
    const expected = running.map(({ name }) => name).sort();
    if (this.#options.homes !== undefined) {
      const views = running.map((agent) => [...agent.aliveByEvents()].sort().join());
      return views.every((view) => view === expected.join());
    }
    for (const agent of running) {
      const members = await agent.members().catch(() => []);
      const alive = members
        .filter(({ state, confirmed }) => state === "alive" && confirmed)
        .map(({ name }) => name);
      if (alive.sort().join() !== expected.join()) return false;
    }
    return true;
  }

  async stop(): Promise<void> {
    for (const agent of this.agents) agent.kill("SIGCONT");
    for (const agent of this.agents) agent.kill("SIGKILL");
    await Promise.all(this.agents.map(({ ended }) => ended));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Polls a condition often; fails with its description. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  what: string,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Processor time used by a process so far, in milliseconds; from /proc. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10;
}

/** Resident memory in bytes; from /proc. */
export function residentBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1] ?? 0) * 1_024;
}
