/**
 * Faults in real clusters: processes that die, stall, lose their network, and restart. Each scenario ends with all
 * members in agreement and returns the times it took. The same scenarios run small in `npm test` and with 32 members by
 * `npm run chaos:membership`.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { AgentCluster, type AgentProcess, until } from "../../../bench/swim/agents.ts";
import { PATIENCE_MS } from "../../patience.ts";

export interface Outcome {
  readonly what: string;
  /** Time until all survivors reported the failure, if there was one. */
  readonly detectedMs: number | null;
  /** Until everybody agreed again. */
  readonly agreedMs: number;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asserts that only the victims were declared dead. */
function assertOnly(cluster: AgentCluster, victims: readonly string[], since: number): void {
  for (const agent of cluster.agents) {
    const wrong = agent.failuresSince(since).filter((name) => !victims.includes(name));
    if (wrong.length > 0) throw new Error(`${agent.name} declared healthy members dead: ${wrong}`);
  }
}

export async function killOne(cluster: AgentCluster, place: number): Promise<Outcome> {
  const victim = cluster.agents[place - 1] as AgentProcess;
  const since = performance.now();
  victim.kill("SIGKILL");
  await victim.ended;
  const survivors = cluster.agents.filter((agent) => agent !== victim);
  await until(
    () => survivors.every((agent) => agent.sees(victim.name, "member-failed", since)),
    PATIENCE_MS,
    `all report ${victim.name}`,
  );
  const detectedMs = performance.now() - since;
  assertOnly(cluster, [victim.name], since);
  cluster.start(place);
  const agreedMs = await cluster.converged(PATIENCE_MS);
  return { what: "SIGKILL one, start it again", detectedMs, agreedMs };
}

export async function stopOne(
  cluster: AgentCluster,
  place: number,
  stopMs: number,
): Promise<Outcome> {
  const victim = cluster.agents[place - 1] as AgentProcess;
  const since = performance.now();
  victim.kill("SIGSTOP");
  await pause(stopMs);
  const resumedAt = performance.now();
  victim.kill("SIGCONT");
  const agreedMs = await cluster.converged(PATIENCE_MS);
  // A while longer: a member that judges others by its own sleep would do so now.
  await pause(3_000);
  assertOnly(cluster, [victim.name], since);
  if (victim.failuresSince(resumedAt).length > 0) throw new Error("the sleeper blamed the others");
  await cluster.converged(PATIENCE_MS);
  return { what: `SIGSTOP one for ${stopMs / 1_000} s`, detectedMs: null, agreedMs };
}

export async function restartAll(cluster: AgentCluster): Promise<Outcome> {
  const size = cluster.agents.length;
  for (const agent of cluster.agents) agent.kill("SIGKILL");
  await Promise.all(cluster.agents.map(({ ended }) => ended));
  const since = performance.now();
  for (let place = 1; place <= size; place++) cluster.start(place);
  await until(
    () => cluster.agents.every(({ events }) => events.length > 0),
    PATIENCE_MS,
    "all are up",
  );
  const upMs = performance.now() - since;
  const agreedMs = await cluster.converged(PATIENCE_MS);
  return {
    what: `all ${size} restarted at once (up in ${seconds(upMs)})`,
    detectedMs: null,
    agreedMs,
  };
}

/** SIGTERM stops in time, and all members receive a farewell instead of a failure. */
export async function leaveOne(cluster: AgentCluster, place: number): Promise<Outcome> {
  const leaver = cluster.agents[place - 1] as AgentProcess;
  const since = performance.now();
  leaver.kill("SIGTERM");
  await leaver.ended;
  if (leaver.exitCode !== 0) throw new Error(`left with ${leaver.exitCode}: ${leaver.stderr}`);
  const others = cluster.agents.filter((agent) => agent !== leaver);
  await until(
    () => others.every((agent) => agent.sees(leaver.name, "member-leave", since)),
    PATIENCE_MS,
    "the farewell is heard",
  );
  assertOnly(cluster, [], since);
  cluster.start(place);
  const agreedMs = await cluster.converged(PATIENCE_MS);
  return { what: "SIGTERM one, start it again", detectedMs: null, agreedMs };
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Two network namespaces joined by one cable; pulling it is the partition. */
export class TwoNetworks {
  readonly #left = `hs-left-${process.pid}`;
  readonly #right = `hs-right-${process.pid}`;
  readonly #half: number;

  constructor(size: number) {
    this.#half = Math.ceil(size / 2);
    const ip = (...args: string[]): void => void execFileSync("ip", args, { stdio: "pipe" });
    for (const name of [this.#left, this.#right]) ip("netns", "add", name);
    ip(
      "-n",
      this.#left,
      "link",
      "add",
      "cable",
      "type",
      "veth",
      "peer",
      "name",
      "cable",
      "netns",
      this.#right,
    );
    [this.#left, this.#right].forEach((name, side) => {
      ip("-n", name, "link", "set", "lo", "up");
      ip("-n", name, "link", "set", "cable", "up");
      ip("-n", name, "addr", "add", `10.78.0.${side + 1}/30`, "dev", "cable");
      for (let place = 1; place <= size; place++) {
        const home = this.home(place);
        if (home.namespace === name) ip("-n", name, "addr", "add", `${home.host}/32`, "dev", "lo");
      }
    });
    this.#routes();
  }

  /** True where the machine lets us make namespaces. */
  static possible(): boolean {
    const name = `hs-try-${process.pid}`;
    const made = spawnSync("ip", ["netns", "add", name], { stdio: "ignore" }).status === 0;
    if (made) spawnSync("ip", ["netns", "del", name], { stdio: "ignore" });
    return made;
  }

  home(place: number): { readonly host: string; readonly namespace: string } {
    const right = place > this.#half;
    return {
      host: `10.78.${right ? 2 : 1}.${place}`,
      namespace: right ? this.#right : this.#left,
    };
  }

  cut(): void {
    execFileSync("ip", ["-n", this.#left, "link", "set", "cable", "down"]);
  }

  mend(): void {
    execFileSync("ip", ["-n", this.#left, "link", "set", "cable", "up"]);
    this.#routes();
  }

  remove(): void {
    for (const name of [this.#left, this.#right]) {
      spawnSync("ip", ["netns", "del", name], { stdio: "ignore" });
    }
  }

  /** Routes through a cable vanish when it is pulled. */
  #routes(): void {
    const replace = (name: string, to: string, via: string): void =>
      void execFileSync("ip", ["-n", name, "route", "replace", to, "via", via]);
    replace(this.#left, "10.78.2.0/24", "10.78.0.2");
    replace(this.#right, "10.78.1.0/24", "10.78.0.1");
  }
}

/** Both halves declare the other dead, and accept it again when the network heals. */
export async function partition(size: number, profile: string, cutMs: number): Promise<Outcome> {
  const networks = new TwoNetworks(size);
  const cluster = new AgentCluster({
    net: "",
    size,
    profile,
    homes: (place) => networks.home(place),
  });
  try {
    await cluster.startAll();
    // Everybody must have been reached once: the unconfirmed are never declared dead. (CONF-2)
    await pause(Math.max(3_000, (size / 4 + 2) * 1_000));
    const since = performance.now();
    networks.cut();
    const apart = (): boolean =>
      cluster.agents.every((agent) => {
        const side = networks.home(Number(agent.name.slice(1))).namespace;
        return [...agent.aliveByEvents()].every(
          (name) => networks.home(Number(name.slice(1))).namespace === side,
        );
      });
    await until(apart, PATIENCE_MS, "each half gives the other up");
    const detectedMs = performance.now() - since;
    await pause(Math.max(0, cutMs - detectedMs));
    networks.mend();
    const agreedMs = await cluster.converged(PATIENCE_MS);
    return { what: `partition into halves for ${seconds(cutMs)}`, detectedMs, agreedMs };
  } finally {
    await cluster.stop();
    networks.remove();
  }
}
