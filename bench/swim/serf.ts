/** serf agents (Debian's package) in the same role as ours, for the side-by-side measurement. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { type Peer, type SeenEvent, until } from "./agents.ts";

export function serfVersion(): string | null {
  const result = spawnSync("serf", ["version"], { encoding: "utf8" });
  if (result.error !== undefined) return null;
  return result.stdout.split("\n")[0]?.trim() ?? null;
}

const EVENT = /EventMember(Join|Failed|Leave): (\S+)/;

class SerfProcess implements Peer {
  readonly name: string;
  readonly events: SeenEvent[] = [];
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;

  constructor(name: string, host: string, seed: string | null, profile: string) {
    this.name = name;
    this.#child = spawn(
      "serf",
      [
        "agent",
        `-node=${name}`,
        `-bind=${host}:7946`,
        `-rpc-addr=${host}:7373`,
        `-profile=${profile}`,
        "-log-level=info",
        ...(seed === null ? [] : [`-retry-join=${seed}`, "-retry-interval=1s"]),
      ],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    let rest = "";
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      const seenAt = performance.now();
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const [, kind, member] = EVENT.exec(line) ?? [];
        if (kind === undefined || member === undefined) continue;
        this.events.push({ event: `member-${kind.toLowerCase()}`, member, seenAt });
      }
    });
    this.ended = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
  }
}

export class SerfCluster {
  readonly agents: SerfProcess[] = [];
  readonly #net: string;
  readonly #size: number;
  readonly #profile: string;

  constructor(net: string, size: number, profile: string) {
    this.#net = net;
    this.#size = size;
    this.#profile = profile;
  }

  start(place: number): SerfProcess {
    const seed = place === 1 ? `127.${this.#net}.2:7946` : `127.${this.#net}.1:7946`;
    const agent = new SerfProcess(`n${place}`, `127.${this.#net}.${place}`, seed, this.#profile);
    this.agents[place - 1] = agent;
    return agent;
  }

  async startAll(): Promise<void> {
    for (let place = 1; place <= this.#size; place++) this.start(place);
    await until(() => this.agents.every((agent) => this.#knows(agent)), 60_000, "serf converges");
  }

  /** All have seen the restarted member join. */
  async rejoined(member: SerfProcess, since: number): Promise<void> {
    const others = this.agents.filter((agent) => agent !== member);
    const seen = (agent: SerfProcess): boolean =>
      agent.events.some(
        ({ event, member: who, seenAt }) =>
          event === "member-join" && who === member.name && seenAt >= since,
      );
    await until(() => others.every(seen) && this.#knows(member), 60_000, "serf takes it back");
  }

  async stop(): Promise<void> {
    for (const agent of this.agents) agent.kill("SIGKILL");
    await Promise.all(this.agents.map(({ ended }) => ended));
  }

  #knows(agent: SerfProcess): boolean {
    const joined = new Set(
      agent.events.filter(({ event }) => event === "member-join").map(({ member }) => member),
    );
    return joined.size === this.#size;
  }
}
