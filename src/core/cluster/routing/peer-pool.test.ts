import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { hashOf, PeerPool, type PoolRules } from "./peer-pool.ts";

const NAMES = ["a", "b", "c", "d", "e", "f", "g"] as const;

function poolOf(names: readonly string[], seed = "pool", rules?: PoolRules): PeerPool {
  const options = { selector: "s1", role: "manager", ...(rules === undefined ? {} : { rules }) };
  const pool = new PeerPool(options, new Random(seed));
  for (const name of names) pool.add(name, "same_dc", 0);
  return pool;
}

function fail(pool: PeerPool, name: string, times: number, now = 1_000): void {
  for (let i = 0; i < times; i++) pool.failed(name, now);
}

describe("peer selection", () => {
  it("uses three primaries in turn and keeps two backups idle (AD-28.19)", () => {
    const pool = poolOf(NAMES);
    const { backups, primaries } = pool.view(0);
    expect([primaries.length, backups.length]).toEqual([3, 2]);
    const asked = Array.from({ length: 6 }, () => pool.choose());
    expect(asked).toEqual([...primaries, ...primaries]);
  });

  it("uses the available peers, primaries first (AD-28.23)", () => {
    expect(poolOf([]).choose()).toBe(null);
    expect(poolOf(["a"]).view(0)).toMatchObject({ primaries: ["a"], backups: [] });
    const { backups, primaries } = poolOf(["a", "b", "c", "d"]).view(0);
    expect([primaries.length, backups.length]).toEqual([3, 1]);
  });

  it("uses a farther tier only while nearer ones have fewer than three peers (AD-28.12, AD-28.13)", () => {
    const pool = new PeerPool({ selector: "s1", role: "gate" }, new Random("tiers"));
    for (const name of ["far1", "far2", "far3", "far4"]) pool.add(name, "global", 0);
    for (const name of ["near1", "near2"]) pool.add(name, "same_dc", 0);
    expect(pool.view(0).candidates).toBe(6);
    pool.add("near3", "same_dc", 0);
    expect(pool.view(0).candidates).toBe(3);
    // Near peers displace far ones even if they are added later.
    expect(pool.view(0).primaries.toSorted()).toEqual(["near1", "near2", "near3"]);
    expect(pool.view(0).backups).toEqual([]);
  });

  it("ranks by a hash that is equal on all nodes and changes only where a peer leaves (AD-28.14, AD-28.15)", () => {
    expect(hashOf(["peer-1", "selector", "manager"])).toBeCloseTo(0.971402, 6);
    expect(hashOf(["ab", "c"])).not.toBe(hashOf(["a", "bc"]));
    const pool = poolOf(NAMES);
    const before = pool.view(0);
    const [, second = ""] = before.primaries;
    pool.remove(second, 0);
    const after = pool.view(0);
    const promoted = before.backups[0];
    expect(after.primaries).toEqual(
      before.primaries.map((name) => (name === second ? promoted : name)),
    );
    expect(after.backups[0]).toBe(before.backups[1]);
  });

  it("mostly picks the faster of two when a slot is filled (AD-28.17)", () => {
    let slow = 0;
    for (let run = 0; run < 400; run++) {
      const pool = poolOf(["a", "b", "c", "d", "e", "f", "slow"], `two choices ${run}`);
      for (const name of NAMES) pool.succeeded(name, 10, 100);
      pool.succeeded("slow", 25, 100);
      const [first = ""] = pool.view(0).primaries.filter((name) => name !== "slow");
      fail(pool, first, 4);
      pool.onTick(2_000);
      if (pool.view(0).backups.at(-1) === "slow") slow++;
    }
    // In most runs two peers are left to draw from, and the slower one is drawn second in half of them.
    expect(slow / 400).toBeLessThan(0.25);
  });
});

describe("eviction", () => {
  it("follows four consecutive failures, promotes a backup at once and refills later (AD-28.20, AD-28.21)", () => {
    const pool = poolOf(NAMES);
    const { backups, primaries } = pool.view(0);
    const [a, b = "", c] = primaries;
    fail(pool, b, 3);
    expect(pool.view(0).primaries).toEqual([a, b, c]);
    pool.failed(b, 1_000);
    expect(pool.view(0)).toMatchObject({ primaries: [a, backups[0], c], backups: [backups[1]] });
    expect(pool.view(0)).toMatchObject({ evicted: [b], promotions: 1 });
    const refillAt = pool.nextDeadline();
    expect(refillAt).toBeGreaterThanOrEqual(1_100);
    expect(refillAt).toBeLessThanOrEqual(1_500);
    expect(pool.onTick(refillAt)).toEqual([]);
    const { backups: refilled } = pool.view(0);
    expect(refilled).toHaveLength(2);
    expect(refilled).not.toContain(b);
    expect(pool.view(0).evictions.consecutive_failures).toBe(1);
  });

  it("lasts until the peer answers a probe after a refresh (AD-28.22)", () => {
    const pool = poolOf(["a", "b", "c"]);
    fail(pool, "b", 4);
    expect(pool.view(0).primaries).toHaveLength(2);
    pool.onTick(2_000);
    const refreshAt = pool.nextDeadline();
    expect(refreshAt).toBeGreaterThanOrEqual(60_000);
    expect(refreshAt).toBeLessThanOrEqual(65_000);
    expect(pool.onTick(refreshAt)).toEqual(["b"]);
    pool.failed("b", refreshAt);
    expect(pool.view(0).evicted).toEqual(["b"]);
    pool.succeeded("b", 5, refreshAt + 1);
    expect(pool.view(0)).toMatchObject({ evicted: [], backups: [] });
    expect(pool.view(0).primaries).toContain("b");
  });

  it("is reverted when no other peer is left", () => {
    const pool = poolOf(["a", "b"]);
    fail(pool, "a", 4);
    expect(pool.view(0)).toMatchObject({ evicted: ["a"], primaries: ["b"] });
    pool.remove("b", 2_000);
    expect(pool.choose()).toBe("a");
  });

  it("follows a latency above three times the p99 of the others", () => {
    const pool = poolOf(["a", "b", "c"]);
    for (let i = 0; i < 30; i++) {
      pool.succeeded("a", 10, i);
      pool.succeeded("b", 10, i);
    }
    pool.succeeded("c", 30, 40);
    expect(pool.view(40).evicted).toEqual([]);
    pool.succeeded("c", 40, 41);
    expect(pool.view(41)).toMatchObject({ evicted: ["c"], evictions: { latency: 1 } });
  });

  it("follows an error rate above 5 % for a minute, with 20 requests and another peer available", () => {
    const pool = poolOf(["a", "b", "c"]);
    for (let at = 0; at <= 60_000; at += 1_000) {
      expect(pool.view(at).evicted).toEqual([]);
      if (at % 10_000 === 0) pool.failed("a", at);
      else pool.succeeded("a", 10, at);
    }
    pool.succeeded("a", 10, 61_000);
    expect(pool.view(61_000)).toMatchObject({ evicted: ["a"], evictions: { error_rate: 1 } });
  });

  it("P5: is suspended while more than half of the peers in use fail at once", () => {
    const outcome = fc.record({
      peer: fc.constantFrom(...NAMES),
      failed: fc.boolean(),
      gapMs: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 300 }), (outcomes) => {
        const pool = poolOf(NAMES);
        /** Consecutive failures, counted independently of the pool. */
        const failures = new Map<string, number>();
        let now = 0;
        for (const { failed, gapMs, peer } of outcomes) {
          now += gapMs;
          const { backups, evicted, primaries } = pool.view(now);
          const inUse = [...primaries, ...backups];
          failures.set(peer, failed ? (failures.get(peer) ?? 0) + 1 : 0);
          if (failed) pool.failed(peer, now);
          else pool.succeeded(peer, 10, now);
          if (evicted.includes(peer) || !pool.view(now).evicted.includes(peer)) continue;
          const bad = inUse.filter((name) => (failures.get(name) ?? 0) > 3);
          expect(bad.length).toBeLessThanOrEqual(inUse.length / 2);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("is suspended and counted when all peers fail, which points at this node or its network", () => {
    const all = (rules?: PoolRules): PeerPool => {
      const pool = poolOf(["a", "b", "c", "d"], "held", rules);
      for (let i = 0; i < 4; i++) for (const name of ["a", "b", "c", "d"]) pool.failed(name, i);
      return pool;
    };
    const { evicted, held } = all().view(10);
    // The first two fail while the others are still healthy.
    expect(evicted.length).toBe(2);
    expect(held).toBe(2);
    expect(all({ evictionsHeld: false }).view(10).evicted.length).toBe(4);
    expect(poolOf(["alone"]).choose()).toBe("alone");
    const alone = poolOf(["alone"]);
    fail(alone, "alone", 10);
    expect(alone.choose()).toBe("alone");
  });
});

it("spreads the refreshes of 500 nodes that start together over 5 s", () => {
  const dues = Array.from({ length: 500 }, (_, at) => poolOf(["a"], `node ${at}`).nextDeadline());
  for (let second = 60; second < 65; second++) {
    const due = dues.filter((at) => at >= second * 1_000 && at < (second + 1) * 1_000);
    expect(due.length).toBeGreaterThan(60);
  }
});
