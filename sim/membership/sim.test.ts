/**
 * The simulator on itself: determinism, seeds under faults, a sample of planted mutants, and
 * whole-cluster behaviours.
 */

import { describe, expect, it } from "vitest";
import { nodeId } from "../../src/core/base/ids.ts";
import { ELECTION_OF, ELECTION_PROFILES } from "../../src/core/membership/election/config.ts";
import { SWIM_PROFILES } from "../../src/core/membership/swim/config.ts";
import { shrink } from "../kernel/shrink.ts";
import { Cluster } from "./cluster.ts";
import { MUTANTS } from "./mutants.ts";
import { OPERATOR, type SimNode } from "./node.ts";
import type { RunOptions } from "./run.ts";
import { runSeed } from "./run.ts";

const options = (seed: number, more: Partial<RunOptions> = {}): RunOptions => ({
  seed,
  minutes: 3,
  mutant: null,
  faults: null,
  size: null,
  ...more,
});

function settled(members: number, seed = 1, electing = 0): Cluster {
  const cluster = new Cluster({
    seed,
    members,
    electing,
    swimConfig: SWIM_PROFILES.lan,
    ...(electing > 0 ? { electionConfig: ELECTION_PROFILES.dc } : {}),
  });
  cluster.startAll(1_000);
  cluster.world.runUntil(20_000);
  expect(cluster.viewsAgree()).toBe(true);
  return cluster;
}

const at = (cluster: Cluster, index: number): SimNode => cluster.nodes[index] as SimNode;

function isolate(cluster: Cluster, alone: number): () => void {
  const { network, nodes } = cluster;
  for (const { spec } of nodes) {
    if (spec.index === alone) continue;
    network.cut(spec.index, alone);
    network.cut(alone, spec.index);
  }
  return () => network.mendAll();
}

describe("the simulator", { timeout: 120_000 }, () => {
  it("gives the same trace hash for the same seed, and another for another", () => {
    const size = { members: 4, electing: 3 };
    const [first, again, other] = [11, 11, 14].map((seed) => runSeed(options(seed, { size })).hash);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it.each([11, 12, 13, 14, 15, 16])("seed %d breaks no invariant", (seed) => {
    expect(runSeed(options(seed)).violation).toBeNull();
  });

  it("knows at least 25 mutants", () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(25);
  });

  it.each([
    ["swim.equalAliveLoses", "M3"],
    ["swim.persistBeforeTelling", "M1"],
    ["swim.accusersDistinct", "P5"],
    ["election.oneVotePerTerm", "E2"],
    ["election.persistVotes", "E2"],
    ["election.preVoteFirst", "E5"],
    ["barrier.waitForSync", "E2"],
  ])("finds the planted mutant %s by %s", (mutant, id) => {
    const size = { members: 6, electing: 3 };
    const finds = (seed: number): boolean =>
      runSeed(options(seed, { mutant, size })).violation?.id === id;
    const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
    expect(seeds.some(finds)).toBe(true);
  });

  it("shrinks a failing run to the faults that matter", () => {
    const failing = options(1, { mutant: "election.preVoteFirst" });
    const broken = runSeed(failing);
    const small = shrink(runSeed, failing, broken, () => {});
    expect(small.faults?.length ?? 0).toBeLessThan(broken.faultCount / 2);
    expect(runSeed(small).violation?.id).toBe(broken.violation?.id);
  });
});

describe("leaders with what --profile lan runs", { timeout: 120_000 }, () => {
  it("another one may act within 3 s of a crash", () => {
    for (let seed = 1; seed <= 5; seed++) {
      const cluster = new Cluster({
        seed,
        members: 0,
        electing: 5,
        swimConfig: SWIM_PROFILES.lan,
        electionConfig: ELECTION_PROFILES[ELECTION_OF.lan],
        clockDrift: 0.045,
      });
      cluster.startAll(500);
      cluster.world.runUntil(20_000);
      for (let crash = 0; crash < 8; crash++) {
        const [leader] = cluster.acting();
        leader?.crash();
        cluster.world.runUntil(cluster.world.now + 3_000);
        expect(cluster.acting(), `seed ${seed}, crash ${crash}`).toHaveLength(1);
        leader?.start();
        cluster.world.runUntil(cluster.world.now + 20_000);
      }
    }
  });
});

describe("a whole cluster", { timeout: 120_000 }, () => {
  it("B-52a: a failed member comes back after the network heals, even when everyone has forgotten it", () => {
    const swimConfig = { ...SWIM_PROFILES.lan, deadReapMs: 60_000 };
    const cluster = new Cluster({ seed: 3, members: 8, swimConfig, seedCount: 1 });
    cluster.startAll(500);
    cluster.world.runUntil(20_000);
    const mend = isolate(cluster, 5);
    cluster.world.runUntil(cluster.world.now + 600_000);
    expect(at(cluster, 0).swim?.look(nodeId("n5"))).toBeNull();
    mend();
    cluster.world.runUntil(cluster.world.now + 60_000);
    expect(cluster.viewsAgree()).toBe(true);
  });

  it("B-52b: join, leave, join are ordered by incarnation, whatever order news comes in", () => {
    const cluster = settled(6);
    const node = at(cluster, 4);
    node.push({ kind: "leave", requester: OPERATOR });
    cluster.world.runUntil(cluster.world.now + 6_000);
    node.crash();
    expect(at(cluster, 0).swim?.look(node.id)?.status).toBe("left");
    node.start();
    cluster.world.runUntil(cluster.world.now + 10_000);
    expect(cluster.viewsAgree()).toBe(true);
  });

  it("B-52c: a farewell ends: gossip about it dies down", () => {
    const cluster = settled(6);
    at(cluster, 4).push({ kind: "leave", requester: OPERATOR });
    cluster.world.runUntil(cluster.world.now + 20_000);
    const queued = cluster.nodes.map((node) => node.swim?.sizes().queue);
    expect(queued).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("B-52d: a failed member can be forced out; a live one cannot", () => {
    const cluster = settled(6);
    at(cluster, 4).crash();
    cluster.world.runUntil(cluster.world.now + 20_000);
    for (const id of [nodeId("n4"), nodeId("n3")]) {
      at(cluster, 0).push({ kind: "forceLeave", id, requester: OPERATOR });
    }
    cluster.world.runUntil(cluster.world.now + 5_000);
    const seen = cluster.up().map((node) => node.swim?.look(nodeId("n4"))?.status);
    expect(new Set(seen)).toEqual(new Set(["left"]));
    expect(cluster.viewsAgree()).toBe(true);
  });

  it("B-52f: a slow disk delays what must be durable, never the answers to probes", () => {
    const cluster = settled(6);
    for (const node of cluster.nodes) {
      node.disk.faults = { ...node.disk.faults, slowSyncChance: 1, slowSyncMsMax: 400 };
    }
    let deaths = 0;
    cluster.watch({
      onSwim: (_node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind === "memberChanged" && effect.change.kind === "failed") deaths++;
        }
      },
    });
    cluster.world.runUntil(cluster.world.now + 300_000);
    expect(deaths).toBe(0);
  });

  it("B-52i: sixteen members, each knowing only the one before it, converge", () => {
    const cluster = new Cluster({
      seed: 4,
      members: 16,
      swimConfig: SWIM_PROFILES.lan,
      seedCount: 0,
    });
    cluster.startAll(0);
    cluster.world.runUntil(10);
    cluster.nodes.forEach((node, index) => {
      const addresses = [at(cluster, Math.max(0, index - 1)).address];
      node.push({ kind: "join", addresses, requester: OPERATOR });
    });
    cluster.world.runUntil(60_000);
    expect(cluster.viewsAgree()).toBe(true);
  });

  it("a member paused for seconds refutes and stays, and no other is affected", () => {
    const cluster = settled(8);
    const dead: string[] = [];
    cluster.watch({
      onSwim: (_node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind === "memberChanged" && effect.change.kind === "failed") {
            dead.push(effect.change.member.id);
          }
        }
      },
    });
    at(cluster, 2).pause();
    cluster.world.runUntil(cluster.world.now + 3_000);
    at(cluster, 2).resume();
    cluster.world.runUntil(cluster.world.now + 60_000);
    expect(dead).toEqual([]);
    expect(cluster.viewsAgree()).toBe(true);
  });

  it("an isolated voter comes back without raising the term or moving the leader", () => {
    const cluster = settled(0, 1, 5);
    const [leader] = cluster.acting();
    const alone = cluster.nodes.findIndex((node) => node !== leader);
    const term = leader?.election?.term;
    for (let i = 0; i < 20; i++) {
      const mend = isolate(cluster, alone);
      cluster.world.runUntil(cluster.world.now + 30_000);
      mend();
      cluster.world.runUntil(cluster.world.now + 2_000);
    }
    expect(cluster.acting()).toEqual([leader]);
    expect(cluster.nodes.map((node) => node.election?.term)).toEqual([
      term,
      term,
      term,
      term,
      term,
    ]);
  });

  it("a minority never leads, and the majority continues", () => {
    const cluster = settled(0, 2, 5);
    const { network } = cluster;
    const [leader] = cluster.acting();
    const minority = [leader?.spec.index ?? 0, ((leader?.spec.index ?? 0) + 1) % 5];
    for (const a of minority) {
      for (let b = 0; b < 5; b++) {
        if (minority.includes(b)) continue;
        network.cut(a, b);
        network.cut(b, a);
      }
    }
    cluster.world.runUntil(cluster.world.now + 10_000);
    const acting = cluster.acting().map((node) => node.spec.index);
    expect(acting).toHaveLength(1);
    expect(minority).not.toContain(acting[0]);
  });
});
