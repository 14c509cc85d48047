import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FenceToken } from "../../base/ids.ts";
import { term } from "../../base/ids.ts";
import {
  FENCE_SEQUENCES,
  FenceGuard,
  FenceIssuer,
  fenceToken,
  TOMBSTONES_MAX,
  termOf,
} from "./fence.ts";

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
