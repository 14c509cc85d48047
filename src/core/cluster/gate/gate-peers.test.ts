import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import type { GateHealth } from "../gate-messages.ts";
import { Peers } from "../manager/peers.ts";
import { submission } from "../manager/testing/world.ts";
import { ANYWHERE } from "../messages.ts";
import { GatePeers, TELL_MS } from "./gate-peers.ts";
import { GateWorld } from "./testing/world.ts";
import type { GateEffect } from "./types.ts";

const OWN = { hasDatacenter: true, datacenters: 1, forwarded: 0, forwardable: 0 };
const WELL: GateHealth = { ...OWN, pressure: "healthy" };
const ADDRESSES = { g1: "10.0.0.1:7700", g2: "10.0.0.2:7700", g3: "10.0.0.3:7700" };

class Host {
  now = 0;
  readonly options = { self: "g1", addresses: ADDRESSES } as never;
  readonly peers = new Peers();
  readonly effects: GateEffect[] = [];
  readonly logs: string[] = [];
  readonly gates = new GatePeers(this);

  emit(effect: GateEffect): void {
    this.effects.push(effect);
  }

  log(level: string, event: string, fields: Readonly<Record<string, string | number>>): void {
    this.logs.push(`${level} ${event} ${Object.values(fields).join(" ")}`);
  }

  up(peer: string, health = WELL): void {
    this.peers.hear({ kind: "peer", peer: nodeId(peer), up: true, version: "" });
    this.gates.onPeer(peer, true);
    this.gates.onHealth(peer, health);
  }

  tick(now: number, own: Partial<GateHealth> = {}): readonly GateEffect[] {
    this.now = now;
    const from = this.effects.length;
    this.gates.pressure = own.pressure ?? "healthy";
    this.gates.onTick(() => ({ ...OWN, ...own }));
    return this.effects.slice(from);
  }
}

describe("health of the gates (AD-19)", () => {
  it("is reported to the other gates periodically, and at once when this gate is no longer ready (AD-19.40)", () => {
    const host = new Host();
    expect(host.tick(0)).toEqual([{ kind: "tellPeers", health: WELL }]);
    expect(host.tick(TELL_MS - 1)).toEqual([]);
    expect(host.tick(TELL_MS + 999)).toEqual([{ kind: "tellPeers", health: WELL }]);
    const pressed = host.tick(TELL_MS + 2_000, { pressure: "stressed" });
    expect(pressed).toContainEqual({
      ...{ kind: "tellPeers", health: { ...WELL, pressure: "stressed" } },
    });
    expect(host.gates.nextDeadline()).toBe(TELL_MS + 3_000);
  });

  it("passes over unhealthy gates, including this one, and logs it once (AD-19.26)", () => {
    const host = new Host();
    host.up("g2");
    host.up("g3", { ...WELL, hasDatacenter: false });
    expect(host.tick(0)).toContainEqual({ kind: "passOver", nodes: ["g3"] });
    expect(host.logs).toEqual(["warn gate.health g3 route drain busy"]);
    expect(host.tick(1_000)).toEqual([]);
    host.gates.onHealth("g3", WELL);
    const pressed = host.tick(2_000, { pressure: "overloaded" });
    expect(pressed).toContainEqual({ kind: "passOver", nodes: ["g1"] });
    expect(host.tick(3_000)).toContainEqual({ kind: "passOver", nodes: [] });
    expect(host.logs.slice(1)).toEqual([
      "warn gate.health g1 route drain busy",
      "info gate.health g3 drain route healthy",
      "info gate.health g1 drain route healthy",
    ]);
  });

  it("sends refused clients to healthy gates in turn (AD-19.22)", () => {
    const host = new Host();
    expect(host.gates.elsewhere()).toBeNull();
    host.up("g2");
    host.up("g3");
    host.tick(0);
    const sent = [1, 2, 3].map(() => host.gates.elsewhere());
    expect(new Set(sent)).toEqual(new Set([ADDRESSES.g2, ADDRESSES.g3]));
    host.gates.onDrains("g2", true);
    host.tick(1_000);
    expect([1, 2].map(() => host.gates.elsewhere())).toEqual([ADDRESSES.g3, ADDRESSES.g3]);
    for (let miss = 0; miss < 3; miss++) host.gates.onPeer("g3", false);
    host.tick(2_000);
    expect(host.gates.elsewhere()).toBeNull();
  });

  it("logs suppressed evictions when most gates fail at once (AD-19.33)", () => {
    const host = new Host();
    for (const peer of ["g2", "g3", "g4"]) host.up(peer);
    host.tick(31_000);
    expect(host.logs.filter((one) => one.includes("gate.held"))).toEqual([
      "warn gate.held 3 more than half of the gates fail at once",
    ]);
    expect(host.gates.view()).toMatchObject({ evicted: 0, held: 3 });
  });
});

describe("gates over a ledger", () => {
  it("name a healthy gate when they drain and get a job (AD-19.9)", () => {
    const world = new GateWorld({ gates: 3 });
    world.meet();
    world.run(2_000);
    world.press(2, 0, "stressed");
    world.run(2_000);
    const [first, second] = world.cluster.nodes.map(({ id }) => id);
    expect(world.ask({ kind: "drain", node: first ?? "" }, 0)).toEqual({ kind: "controlled" });
    const submit = {
      kind: "submit",
      key: "k",
      submission: submission(),
      routing: ANYWHERE,
    } as const;
    expect(world.ask(submit, 0)).toMatchObject({ reason: "retry", address: `${second}:1` });
    expect(world.ask(submit, 1)).toMatchObject({ kind: "accepted" });
  });

  it("lead no new jobs and take over none while overloaded (AD-19.26)", () => {
    const world = new GateWorld({ gates: 3 });
    const leads = (jobs: readonly string[]) => jobs.map((job) => world.leaderOf(job));
    const submitted = (from: string) =>
      [1, 2, 3, 4, 5, 6].map((one) => world.submit({}, {}, { key: `${from}${one}` }));
    world.run(2_000);
    expect(leads(submitted("well"))).toContain(1);
    world.press(1, 0, "overloaded");
    world.run(2_000);
    const led = leads(submitted("pressed"));
    expect(led).not.toContain(1);
    expect(led).not.toContain(-1);
    const answer = world.ask({ kind: "nodes" });
    if (answer.kind !== "nodes") throw new Error(answer.kind);
    const gates = answer.nodes.filter(({ role }) => role === "gate");
    expect(gates.map(({ health }) => health)).toEqual(["healthy", "busy", "healthy"]);
    const { id } = world.cluster.at(1);
    expect(world.logs.join("\n")).toContain(`gate.health {"gate":"${id}"`);
  });
});
