import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ViewFence } from "./view-fence.ts";

const JOBS_MAX = 10_000;

describe("highest known views", () => {
  it("only increase, and are restored from disk (AD-10)", () => {
    const orders = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.nat(5)), { maxLength: 60 });
    fc.assert(
      fc.property(orders, fc.nat(60), (asked, restartAt) => {
        let fence = new ViewFence([]);
        const highest = new Map<string, number>();
        for (const [at, [job, view]] of asked.entries()) {
          if (at === restartAt) fence = new ViewFence(fence.views);
          const known = highest.get(job) ?? -1;
          const expected = view < known ? "stale" : view === known ? "current" : "raised";
          expect(fence.admit(job, view)).toBe(expected);
          highest.set(job, Math.max(known, view));
          expect(fence.viewOf(job)).toBe(highest.get(job));
        }
      }),
    );
  });

  it("of finished jobs are remembered up to the limit, evicting the least recently used (FTOK-6)", () => {
    const fence = new ViewFence([]);
    fence.admit("over", 7);
    fence.admit("used", 7);
    for (let at = 0; at < JOBS_MAX - 2; at++) fence.admit(`job ${at}`, 1);
    expect(fence.views).toHaveLength(JOBS_MAX);
    expect([fence.admit("used", 7), fence.viewOf("over")]).toEqual(["current", 7]);
    // An old order of the job starts nothing.
    expect(fence.admit("over", 6)).toBe("stale");
    fence.admit("one more", 1);
    expect(fence.views).toHaveLength(JOBS_MAX);
    // A refused order does not count as use.
    expect([fence.viewOf("over"), fence.viewOf("used")]).toEqual([null, 7]);
    const kept = new ViewFence([["oldest", 3], ...fence.views]);
    expect([kept.viewOf("oldest"), kept.viewOf("used")]).toEqual([null, 7]);
  });
});
