import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import { type NodeId, nodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { sha256 } from "../../base/sha256.ts";
import {
  AntiEntropy,
  type AntiEntropyEffect,
  type AntiEntropyInput,
  type AntiEntropyMessage,
} from "./anti-entropy.ts";
import { ANTI_ENTROPY_DEFAULTS } from "./config.ts";
import type { JobEvent } from "./events.ts";
import { advanceSeq, applyEvent } from "./fold.ts";
import { formatJobId, type JobId } from "./job-id.ts";
import { initialState, type JobState } from "./job-state.ts";
import { childrenOf, isLeaf, leafOf, MERKLE_LEAVES, MerkleTree, sameHash } from "./merkle.ts";
import { event } from "./testing/events.ts";

const config = ANTI_ENTROPY_DEFAULTS;
const US = nodeId("us");
const EU = nodeId("eu");

/** One committed place of a job's log; null where it holds no job event. */
interface CommittedEntry {
  readonly seq: number;
  readonly event: JobEvent | null;
}

function jobOf(at: number): JobId {
  return formatJobId({ region: "use1", timestampMs: 1e12 + at, gate: "g", sequence: 1 });
}

/** The one true log of each job, as its primary has it. */
function logOf(jobId: JobId, length: number): readonly CommittedEntry[] {
  const events: JobEvent[] = [event("JobCreated", { jobId })];
  while (events.length < length) events.push(event("JobAccepted", { jobId, dcId: "a" }));
  // A place in the middle holds no event, as after a take-over.
  return events.map((one, seq) => ({ seq, event: seq === 2 ? null : one }));
}

function foldUpTo(jobId: JobId, log: readonly CommittedEntry[], count: number): JobState {
  let state = initialState(jobId);
  for (const { event, seq } of log.slice(0, count)) {
    state = event === null ? advanceSeq(state, seq) : applyEvent(state, event, seq).state;
  }
  return state;
}

class Region {
  readonly tree = new MerkleTree();
  readonly machine: AntiEntropy;

  readonly name: NodeId;

  constructor(name: NodeId, changes: Partial<typeof config>) {
    this.name = name;
    this.machine = new AntiEntropy(this.tree, { ...config, ...changes }, new Random(name));
  }

  put(state: JobState): void {
    const { appliedSeq: commitSeq, chain, jobId } = state;
    this.tree.set({ jobId, commitSeq, chain });
  }
}

/** Two regions, a network that may lose, an authority that has every log. */
class World {
  readonly us: Region;
  readonly eu: Region;
  readonly logs = new Map<JobId, readonly CommittedEntry[]>();
  readonly messages: AntiEntropyMessage[] = [];
  readonly alarms: Extract<AntiEntropyEffect, { kind: "alarm" }>[] = [];
  readonly states: string[] = [];
  now = 0;
  lose: () => boolean = () => false;

  constructor(changes: Partial<typeof config> = {}) {
    this.us = new Region(US, changes);
    this.eu = new Region(EU, changes);
  }

  add(jobId: JobId, usCount: number, euCount: number): void {
    const log = logOf(jobId, Math.max(usCount, euCount, 1));
    this.logs.set(jobId, log);
    if (usCount > 0) this.us.put(foldUpTo(jobId, log, usCount));
    if (euCount > 0) this.eu.put(foldUpTo(jobId, log, euCount));
  }

  step(region: Region, input: AntiEntropyInput): void {
    const queue: [Region, AntiEntropyInput][] = [[region, input]];
    for (let at = 0; at < queue.length; at++) {
      const [where, what] = queue[at] as [Region, AntiEntropyInput];
      for (const effect of where.machine.step(what, millis(this.now))) {
        const next = this.carryOut(where, effect);
        if (next !== null) queue.push(next);
      }
    }
  }

  carryOut(where: Region, effect: AntiEntropyEffect): [Region, AntiEntropyInput] | null {
    switch (effect.kind) {
      case "send": {
        this.messages.push(effect.message);
        if (this.lose()) return null;
        const other = where === this.us ? this.eu : this.us;
        return [other, { kind: "message", from: where.name, message: effect.message }];
      }
      case "fetch": {
        const { jobId, peer } = effect;
        const log = this.logs.get(jobId);
        if (!this.lose() && log !== undefined) where.put(foldUpTo(jobId, log, log.length));
        return [where, { kind: "fetched", peer, jobId }];
      }
      case "alarm":
        this.alarms.push(effect);
        return null;
      case "stateChanged":
        if (where === this.us) this.states.push(effect.to);
        return null;
    }
  }

  start(): this {
    this.step(this.us, { kind: "peers", peers: [EU] });
    this.step(this.eu, { kind: "peers", peers: [US] });
    return this;
  }

  advance(ms: number): this {
    const until = this.now + ms;
    for (;;) {
      const due = [this.us, this.eu].map((region) => region.machine.nextDeadline() ?? until + 1);
      const next = Math.min(...due);
      if (next > until) break;
      this.now = Math.max(this.now, next);
      for (const region of [this.us, this.eu]) this.step(region, { kind: "tick" });
    }
    this.now = until;
    return this;
  }

  get agrees(): boolean {
    return sameHash(this.us.tree.root, this.eu.tree.root);
  }
}

describe("the Merkle tree", () => {
  it("keeps the root equal to a full rehash after any changes", () => {
    const change = fc.tuple(fc.nat(30), fc.integer({ min: -1, max: 5 }), fc.boolean());
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const tree = new MerkleTree();
        const jobs = new Map<JobId, number>();
        for (const [at, seq, look] of changes) {
          const jobId = jobOf(at);
          if (seq < 0) {
            jobs.delete(jobId);
            tree.delete(jobId);
          } else {
            jobs.set(jobId, seq);
            tree.set({ jobId, commitSeq: seq, chain: sha256(encodeUtf8(`${seq}`)) });
          }
          if (look) tree.hash(leafOf(jobId) >> (at % 11));
        }
        const anew = new MerkleTree();
        for (const [jobId, seq] of [...jobs].reverse()) {
          anew.set({ jobId, commitSeq: seq, chain: sha256(encodeUtf8(`${seq}`)) });
        }
        expect(tree.root).toEqual(anew.root);
        expect(tree.jobs).toBe(jobs.size);
      }),
      { numRuns: 60 },
    );
  });

  it("spreads jobs over its leaves although their ids begin alike (AE-2)", () => {
    const leaves = new Set(Array.from({ length: 2_000 }, (_, at) => leafOf(jobOf(at))));
    expect(leaves.size).toBeGreaterThan(800);
    for (const leaf of leaves) expect(isLeaf(leaf)).toBe(true);
    expect(childrenOf(1)).toEqual([2, 3]);
    expect(MERKLE_LEAVES).toBe(1_024);
  });
});

describe("a round", () => {
  it("between equal replicas is one question and one answer each", () => {
    const world = new World();
    for (let at = 0; at < 20; at++) world.add(jobOf(at), 4, 4);
    world.start().advance(1);
    expect(world.messages.map(({ kind }) => kind).sort()).toEqual([
      "rootHash",
      "rootHash",
      "rootRequest",
      "rootRequest",
    ]);
    expect(world.states).toEqual(["COMPARING", "CONSISTENT"]);
  });

  it("walks the states of the table and repairs what is behind", () => {
    const world = new World();
    for (let at = 0; at < 50; at++) world.add(jobOf(at), at === 7 ? 1 : 5, 5);
    world.add(jobOf(99), 0, 3);
    world.start().advance(1);
    expect(world.agrees).toBe(true);
    expect(world.states).toEqual(["COMPARING", "FETCHING", "VERIFYING", "CONSISTENT"]);
  });

  it("costs hashes in proportion to what differs, not to what there is (AE-1)", () => {
    const hashesFor = (divergent: number): number => {
      const world = new World();
      for (let at = 0; at < 1_000; at++) world.add(jobOf(at), at < divergent ? 1 : 2, 2);
      world.step(world.us, { kind: "peers", peers: [EU] });
      world.advance(1);
      expect(world.agrees).toBe(true);
      const hashes = world.messages.filter((it) => it.kind === "subtreeHashes");
      return hashes.reduce((sum, it) => sum + it.hashes.length, 0);
    };
    const levels = 10;
    for (const divergent of [1, 5, 20]) {
      expect(hashesFor(divergent)).toBeLessThanOrEqual(2 * divergent * levels);
    }
  });

  it("notifies a peer that is behind, which then repairs itself within the gap", () => {
    const world = new World();
    world.add(jobOf(1), 5, 2);
    world.add(jobOf(2), 3, 0);
    world.step(world.us, { kind: "peers", peers: [EU] });
    world.step(world.eu, { kind: "peers", peers: [US] });
    // The peer's first round finds us unreachable and backs off for a minute; our round makes it retry early.
    world.lose = () => true;
    world.step(world.eu, { kind: "tick" });
    world.advance(10_000);
    world.lose = () => false;
    world.step(world.us, { kind: "healed", peer: EU });
    world.advance(2 * config.roundGapMs);
    expect(world.messages.some(({ kind }) => kind === "youAreBehind")).toBe(true);
    expect(world.agrees).toBe(true);
  });

  it("asks again at once when a request was lost with the connection (AE-4)", () => {
    const world = new World();
    world.add(jobOf(1), 3, 5);
    world.lose = () => true;
    world.step(world.us, { kind: "peers", peers: [EU] });
    world.advance(2);
    world.lose = () => false;
    world.step(world.us, { kind: "healed", peer: EU });
    world.advance(config.roundGapMs + 2);
    expect(world.agrees).toBe(true);
  });

  it("notifies a peer of a whole job that it lacks", () => {
    const world = new World();
    world.add(jobOf(1), 3, 0);
    world.step(world.us, { kind: "peers", peers: [EU] });
    world.advance(1);
    expect(world.messages.at(-1)).toEqual({ kind: "youAreBehind" });
  });

  it("raises an alarm for two committed histories of one length, and fetches nothing (LEDG-6)", () => {
    const world = new World();
    world.add(jobOf(1), 3, 3);
    const other = foldUpTo(jobOf(1), logOf(jobOf(1), 3), 3);
    world.eu.put(other);
    const before = world.us.tree.root;
    world.start().advance(1);
    expect(world.alarms).toMatchObject([
      { jobId: jobOf(1), seq: 2, why: "two committed histories of one length" },
      { jobId: jobOf(1), seq: 2 },
    ]);
    expect(world.us.tree.root).toEqual(before);
  });

  it("comes every minute with jitter, one per peer at a time, and after a heal (AE-4)", () => {
    const world = new World();
    world.step(world.us, { kind: "peers", peers: [EU] });
    world.advance(600_000);
    const rounds = world.messages.filter(({ kind }) => kind === "rootRequest").length;
    expect(rounds).toBeGreaterThanOrEqual(9);
    expect(rounds).toBeLessThanOrEqual(13);
    world.step(world.us, { kind: "healed", peer: EU });
    world.advance(1);
    expect(world.messages.filter(({ kind }) => kind === "rootRequest")).toHaveLength(rounds + 1);
    for (let i = 0; i < 50; i++) world.step(world.us, { kind: "healed", peer: EU });
    world.advance(config.roundGapMs - 3);
    expect(world.messages.filter(({ kind }) => kind === "rootRequest")).toHaveLength(rounds + 1);
  });

  it("pages leaves with many jobs", () => {
    const world = new World({ leafPageJobs: 4 });
    const ids = Array.from({ length: 20_000 }, (_, at) => jobOf(at));
    const crowded = ids.filter((jobId) => leafOf(jobId) === MERKLE_LEAVES);
    expect(crowded.length).toBeGreaterThan(8);
    crowded.forEach((jobId, at) => {
      world.add(jobId, at % 3, at % 2);
    });
    world.start().advance(5_000);
    const pages = world.messages.filter((it) => it.kind === "leafJobs");
    expect(pages.length).toBeGreaterThan(2);
    expect(pages.every(({ jobs }) => jobs.length <= 4)).toBe(true);
    expect(world.agrees).toBe(true);
  });
});

describe("repair", () => {
  it("may be interrupted anywhere and done again (AE-5)", () => {
    const seeds = fc.record({
      seed: fc.nat(),
      cuts: fc.array(fc.tuple(fc.nat(60), fc.nat(6), fc.nat(6)), { maxLength: 25 }),
    });
    fc.assert(
      fc.property(seeds, ({ cuts, seed }) => {
        const world = new World({ stepTimeoutMs: 1_000 });
        for (const [at, us, eu] of new Map(cuts.map((cut) => [cut[0], cut])).values()) {
          world.add(jobOf(at), us, eu);
        }
        const random = new Random(seed);
        world.lose = () => random.chance(0.3);
        world.start().advance(120_000);
        world.lose = () => false;
        world.advance(150_000);
        expect(world.agrees).toBe(true);
        expect(world.alarms).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});
