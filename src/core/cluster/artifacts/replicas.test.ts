import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { type ReplicaEffect, Replicas } from "./replicas.ts";

const PART_BYTES = 4;

/** Members over simulated links and disks. Blobs are texts, and the hash of a blob is its text. */
class Members {
  now = 0;
  readonly names: readonly NodeId[];
  readonly machines = new Map<NodeId, Replicas>();
  readonly disks = new Map<NodeId, Map<string, string>>();
  readonly outcomes = new Map<NodeId, string[]>();
  readonly down = new Set<NodeId>();
  /** Members that reject every blob. */
  readonly full = new Set<NodeId>();
  /** Members that do not answer. */
  readonly silent = new Set<NodeId>();
  parts = 0;
  #queue: (() => void)[] = [];

  constructor(count: number) {
    this.names = Array.from({ length: count }, (_, at) => `m${at + 1}` as NodeId);
    for (const self of this.names) {
      this.machines.set(self, new Replicas({ self, members: this.names }));
      this.disks.set(self, new Map());
      this.outcomes.set(self, []);
    }
    for (const self of this.names)
      for (const other of this.names)
        if (self !== other) this.follow(self, this.machine(self).onMember(other, true, millis(0)));
  }

  machine(name: NodeId | string): Replicas {
    const machine = this.machines.get(name as NodeId);
    if (machine === undefined) throw new Error(`no member ${name}`);
    return machine;
  }

  disk(name: NodeId | string): Map<string, string> {
    return this.disks.get(name as NodeId) ?? new Map();
  }

  put(name: string, text: string): void {
    this.disk(name).set(text, text);
    this.follow(name as NodeId, this.machine(name).onHeld([text], millis(this.now)));
    this.settle();
  }

  /** The bytes are in memory, but the local disk rejects them. */
  lend(name: string, text: string): void {
    this.disk(name).set(text, text);
    this.follow(name as NodeId, this.machine(name).lend(text, millis(this.now)));
    this.settle();
  }

  replicate(name: string, ...texts: readonly string[]): void {
    const effects = this.machine(name).replicate(texts, false, millis(this.now));
    this.follow(name as NodeId, effects);
    this.settle();
  }

  fetch(name: string, text: string): void {
    this.follow(name as NodeId, this.machine(name).fetch(text, millis(this.now)));
    this.settle();
  }

  cut(name: string, down: boolean): void {
    if (down) this.down.add(name as NodeId);
    else this.down.delete(name as NodeId);
    for (const other of this.names) {
      if (other === name) continue;
      this.follow(other, this.machine(other).onMember(name as NodeId, !down, millis(this.now)));
      this.follow(name as NodeId, this.machine(name).onMember(other, !down, millis(this.now)));
    }
    this.settle();
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; this.now += 100) {
      for (const [name, machine] of this.machines)
        if ((machine.nextDeadline() ?? Number.POSITIVE_INFINITY) <= this.now)
          this.follow(name, machine.tick(millis(this.now)));
      this.settle();
    }
  }

  settle(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) next();
  }

  outcomesOf(name: string): readonly string[] {
    return this.outcomes.get(name as NodeId) ?? [];
  }

  follow(self: NodeId, effects: readonly ReplicaEffect[]): void {
    for (const effect of effects)
      if (effect.kind === "read" || effect.kind === "put")
        this.#queue.push(() => this.#answer(self, effect));
      else this.outcomes.get(self)?.push(`${effect.kind} ${effect.hash}`);
  }

  #answer(self: NodeId, effect: Extract<ReplicaEffect, { kind: "read" | "put" }>): void {
    const { at, hash, offset, request } = effect;
    const machine = this.machine(self);
    const now = millis(this.now);
    const cut = at !== self && (this.down.has(at) || this.down.has(self));
    if (cut || this.silent.has(at)) return;
    const disk = this.disk(at);
    if (effect.kind === "read") {
      const text = disk.get(hash);
      if (text === undefined) {
        this.follow(self, machine.onRefused(request, now));
        return;
      }
      const bytes = new TextEncoder().encode(text.slice(offset, offset + PART_BYTES));
      this.follow(self, machine.onPart(request, { total: text.length, bytes }, now));
      return;
    }
    this.parts++;
    if (this.full.has(at)) {
      this.follow(self, machine.onRefused(request, now));
      return;
    }
    const partial = disk.get(`${hash}.part`) ?? "";
    const known = disk.get(hash);
    const text =
      known ??
      (offset === partial.length ? partial + new TextDecoder().decode(effect.bytes) : partial);
    if (text === hash) {
      disk.delete(`${hash}.part`);
      if (known === undefined) {
        disk.set(hash, text);
        this.follow(at, this.machine(at).onHeld([hash], now));
      }
    } else disk.set(`${hash}.part`, text);
    this.follow(self, machine.onPut(request, text.length, now));
  }
}

const TEXT = "a blob of several parts";

describe("Replicas", () => {
  it("reports a blob ready when a quorum has it, and copies it to every member", () => {
    const members = new Members(3);
    members.put("m1", TEXT);
    members.replicate("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    for (const name of members.names) expect(members.disk(name).get(TEXT)).toBe(TEXT);
    expect(members.machine("m1").size).toBe(0);
    expect(members.machine("m1").nextDeadline()).toBe(null);
  });

  it("reports a blob ready at once in a group of one", () => {
    const members = new Members(1);
    members.put("m1", "x");
    members.replicate("m1", "x", "y");
    expect(members.outcomesOf("m1")).toEqual(["ready x", "absent y"]);
  });

  it("waits for an unreachable quorum, and reports ready once it is back", () => {
    const members = new Members(3);
    members.cut("m2", true);
    members.cut("m3", true);
    members.put("m1", TEXT);
    members.replicate("m1", TEXT);
    members.run(10_000);
    expect(members.outcomesOf("m1")).toEqual([]);
    members.cut("m3", false);
    members.run(2_000);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    expect(members.disk("m2").has(TEXT)).toBe(false);
  });

  it("fetches a blob from a member that has it", () => {
    const members = new Members(3);
    members.put("m3", TEXT);
    members.fetch("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`found ${TEXT}`]);
    expect(members.disk("m1").get(TEXT)).toBe(TEXT);
  });

  it("fetches a missing blob before replicating it", () => {
    const members = new Members(3);
    members.cut("m1", true);
    members.put("m2", TEXT);
    members.cut("m1", false);
    members.replicate("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    for (const name of members.names) expect(members.disk(name).get(TEXT)).toBe(TEXT);
  });

  it("reports a blob absent when no member has it", () => {
    const members = new Members(3);
    members.replicate("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`absent ${TEXT}`]);
    expect(members.machine("m1").size).toBe(0);
  });

  it("resumes an interrupted copy", () => {
    const members = new Members(3);
    members.put("m1", TEXT);
    members.disk("m2").set(`${TEXT}.part`, TEXT.slice(0, 20));
    members.cut("m3", true);
    members.replicate("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    expect(members.parts).toBe(2);
  });

  it("retries a member that rejects a blob, and gives up when callers stop asking", () => {
    const members = new Members(3);
    members.full.add("m2" as NodeId).add("m3" as NodeId);
    members.put("m1", TEXT);
    members.replicate("m1", TEXT);
    members.run(10_000);
    expect(members.outcomesOf("m1")).toEqual([]);
    expect(members.parts).toBeLessThan(30);
    members.full.clear();
    members.run(2_000);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    members.full.add("m2" as NodeId).add("m3" as NodeId);
    members.put("m1", "other");
    members.replicate("m1", "other");
    members.run(60_000);
    expect(members.machine("m1").size).toBe(0);
    expect(members.machine("m1").nextDeadline()).toBe(null);
  });

  it("replicates a blob that the local disk rejects to a quorum of the others", () => {
    const members = new Members(3);
    members.lend("m1", TEXT);
    members.run(2_000);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    expect([members.disk("m2").has(TEXT), members.disk("m3").has(TEXT)]).toEqual([true, true]);
  });

  it("needs one other member with space when the local disk rejects a blob, and waits for unreachable ones", () => {
    const members = new Members(3);
    members.full.add("m2" as NodeId);
    members.cut("m3", true);
    members.lend("m1", TEXT);
    members.run(120_000);
    expect(members.outcomesOf("m1")).toEqual([]);
    members.cut("m3", false);
    members.run(120_000);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    const full = new Members(3);
    full.full.add("m2" as NodeId).add("m3" as NodeId);
    full.lend("m1", TEXT);
    full.run(60_000);
    expect(full.outcomesOf("m1")).toEqual([`absent ${TEXT}`]);
  });

  it("fetches from the next member when one does not answer", () => {
    const members = new Members(3);
    members.put("m3", TEXT);
    members.silent.add("m2" as NodeId);
    members.fetch("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([]);
    members.run(6_000);
    expect(members.outcomesOf("m1")).toEqual([`found ${TEXT}`]);
  });

  it("copies a blob again to a member whose disk was lost", () => {
    const members = new Members(3);
    members.put("m1", TEXT);
    members.replicate("m1", TEXT);
    for (const name of ["m2", "m3"]) {
      members.cut(name, true);
      members.disk(name).clear();
    }
    members.replicate("m1", TEXT);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`]);
    members.cut("m2", false);
    expect(members.outcomesOf("m1")).toEqual([`ready ${TEXT}`, `ready ${TEXT}`]);
    expect(members.disk("m2").get(TEXT)).toBe(TEXT);
  });

  it("reports ready only when a quorum has the blob, for any number of blobs and any partitions", () => {
    for (let seed = 0; seed < 50; seed++) {
      const random = new Random(`replicas ${seed}`);
      const members = new Members(5);
      const texts = Array.from({ length: 30 }, (_, at) => `${at} `.repeat(1 + (at % 9)));
      for (const text of texts) {
        const name = `m${1 + random.below(5)}`;
        members.put(name, text);
        members.replicate(name, text);
        if (random.float() < 0.3) members.cut(`m${1 + random.below(5)}`, random.float() < 0.5);
        members.run(random.below(3) * 500);
      }
      for (const name of members.names) members.cut(name, false);
      members.run(20_000);
      for (const [name, outcomes] of members.outcomes)
        for (const outcome of outcomes.filter((one) => one.startsWith("ready "))) {
          const text = outcome.slice("ready ".length);
          const holders = members.names.filter((one) => members.disk(one).has(text));
          expect([seed, name, holders.length >= 3]).toEqual([seed, name, true]);
        }
      expect([seed, ...members.names.map((one) => members.machine(one).size)]).toEqual([
        seed,
        ...members.names.map(() => 0),
      ]);
    }
  });
});
