import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FenceToken } from "../../base/ids.ts";
import { nodeId, term } from "../../base/ids.ts";
import {
  FENCE_SEQUENCES,
  FenceGuard,
  FenceIssuer,
  fenceToken,
  TOMBSTONES_MAX,
  termOf,
} from "./fence.ts";
import { JOB_LEASE_MARGIN_MS, JOB_LEASE_MS, JobLeases } from "./job-lease.ts";

describe("fence tokens", () => {
  it("are term x 2^20 + sequence, and fit 53 bits", () => {
    expect(fenceToken(term(6), 5)).toBe(6 * 2 ** 20 + 5);
    expect(termOf(fenceToken(term(6), 5))).toBe(6);
    expect(Number.isSafeInteger(fenceToken(term(2 ** 33 - 1), FENCE_SEQUENCES - 1))).toBe(true);
  });

  it("rise within a term, and every token of a later term is larger", () => {
    const [old, young] = [new FenceIssuer(term(5)), new FenceIssuer(term(6))];
    const tokens = [old.next(), old.next(), young.next(), young.next()];
    expect([...tokens].sort((a, b) => (a ?? 0) - (b ?? 0))).toEqual(tokens);
  });

  it("of 5, 5, 4, 6 in any order, each runs at most once and never after a larger one", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([5, 5, 4, 6], { minLength: 4 }), (order) => {
        const guard = new FenceGuard(term(0));
        const ran: number[] = [];
        for (const sequence of order) {
          const token = fenceToken(term(1), sequence);
          if (guard.admit("w", token) === "accepted") ran.push(sequence);
        }
        expect(new Set(ran).size).toBe(ran.length);
        expect([...ran].sort()).toEqual(ran);
      }),
    );
  });

  it("a paused leader's order is refused after take-over, for every subject", () => {
    const guard = new FenceGuard(term(0));
    expect(guard.admit("w1", fenceToken(term(6), 0))).toBe("accepted");
    expect(guard.admit("w2", fenceToken(term(5), 900))).toBe("stale");
    expect(guard.highestTerm).toBe(6);
  });

  it("a repeat is told from a new order, and a result of a superseded order is not current", () => {
    const guard = new FenceGuard(term(0));
    const [first, second] = [fenceToken(term(1), 1), fenceToken(term(1), 2)];
    guard.admit("w", first);
    expect(guard.admit("w", first)).toBe("repeat");
    guard.admit("w", second);
    expect([guard.isCurrent("w", first), guard.isCurrent("w", second)]).toEqual([false, true]);
  });

  it("an ended subject keeps its tombstone, within a bound", () => {
    const guard = new FenceGuard(term(0));
    const token = fenceToken(term(1), 7);
    guard.admit("w", token);
    guard.end("w", 0);
    expect(guard.admit("w", token)).toBe("repeat");
    expect(guard.admit("w", (token - 1) as FenceToken)).toBe("stale");
    for (let i = 0; i < TOMBSTONES_MAX + 50; i++) {
      guard.admit(`x${i}`, token);
      guard.end(`x${i}`, 1);
    }
    expect(guard.subjectCount).toBeLessThanOrEqual(TOMBSTONES_MAX);
  });
});

describe("job leases", () => {
  const [a, b, c] = ["a", "b", "c"].map(nodeId) as [
    ReturnType<typeof nodeId>,
    ReturnType<typeof nodeId>,
    ReturnType<typeof nodeId>,
  ];
  const gates = (quorum = true) => {
    const dead = new Set<string>();
    const around = {
      ringOrder: () => [a, b, c],
      isAlive: (gate: string) => !dead.has(gate),
      hasQuorum: () => quorum,
    };
    return { dead, of: (self: typeof a) => new JobLeases(self, around) };
  };

  it("the ring's owner claims with fence 1 and names the next gate as backup; nobody else may", () => {
    const world = gates();
    expect(world.of(b).claim("j", 0)).toBeNull();
    expect(world.of(a).claim("j", 0)).toEqual({ job: "j", owner: a, backup: b, fence: 1 });
    expect(gates(false).of(a).claim("j", 0)).toBeNull();
  });

  it("the backup takes over when the lease ran out, with a higher fence, and the old owner is stale", () => {
    const world = gates();
    const [owner, backup] = [world.of(a), world.of(b)];
    const claim = owner.claim("j", 0);
    if (claim === null) throw new Error("the owner claims");
    expect(backup.onSync(claim, 5)).toBe("adopted");
    expect(backup.claim("j", JOB_LEASE_MS)).toBeNull();
    const taken = backup.claim("j", JOB_LEASE_MS + 5);
    expect(taken).toMatchObject({ owner: b, fence: 2 });
    expect(backup.checkFence("j", 1)).toBe("stale");
    if (taken !== null) expect(owner.onSync(taken, JOB_LEASE_MS + 9)).toBe("adopted");
    expect(owner.mayAct("j", JOB_LEASE_MS + 10)).toBe(false);
  });

  it("L4: the owner stops before the backup may start", () => {
    const owner = gates().of(a);
    owner.claim("j", 0);
    expect(owner.mayAct("j", JOB_LEASE_MS - JOB_LEASE_MARGIN_MS - 1)).toBe(true);
    expect(owner.mayAct("j", JOB_LEASE_MS - JOB_LEASE_MARGIN_MS)).toBe(false);
    expect(owner.renew("j", JOB_LEASE_MS)).toBeNull();
  });

  it("if the backup is dead too, the next live gate in ring order takes over", () => {
    const world = gates();
    const third = world.of(c);
    third.onSync({ job: "j", owner: a, backup: b, fence: 1 }, 0);
    world.dead.add(a).add(b);
    expect(third.claim("j", 1)).toMatchObject({ owner: c, fence: 2 });
  });

  it("L1: of two claims with one fence, the same one stands everywhere", () => {
    const world = gates();
    const claims = [
      { job: "j", owner: b, backup: c, fence: 2 },
      { job: "j", owner: c, backup: a, fence: 2 },
    ];
    for (const order of [claims, [...claims].reverse()]) {
      const gate = world.of(a);
      for (const claim of order) gate.onSync(claim, 0);
      expect(gate.ownerOf("j")).toEqual({ owner: b, fence: 2 });
    }
  });
});
