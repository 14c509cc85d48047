import { describe, expect, it } from "vitest";
import { NodeWatch, WATCH_MS } from "./node-watch.ts";

const NAMES = ["a", "b", "c", "d", "e", "f"];
const IDLE = { taken: 0, done: 0, open: 0 };

/** The first ones have been silent for 30 s, the others were just seen. */
function failing(count: number, of: number): NodeWatch {
  const watch = new NodeWatch();
  for (const [at, name] of NAMES.slice(0, of).entries()) {
    watch.add(name, 0);
    if (at >= count) watch.heard(name, 30_000);
  }
  return watch;
}

describe("watched nodes (AD-19.30)", () => {
  it.each([
    [1, 1, "evict"],
    [2, 2, "evict"],
    [3, 6, "evict"],
    [4, 6, "drain"],
    [2, 3, "drain"],
  ])("%i of %i that fail at once: %s (AD-19.31, AD-19.32)", (count, of, decision) => {
    const watch = failing(count, of);
    const decided = NAMES.slice(0, of).map((name) => watch.decision(name, 30_000));
    const well = Array(of - count).fill("route");
    expect(decided).toEqual([...Array(count).fill(decision), ...well]);
    const isHeld = decision === "drain";
    expect([watch.evicted, watch.held]).toEqual(isHeld ? [0, count] : [count, 0]);
  });

  it("have a bounded history of decisions", () => {
    const watch = new NodeWatch();
    watch.add("a", 0);
    watch.add("b", 0);
    const decided = () => watch.views(now).find(({ name }) => name === "a")?.history ?? [];
    let now = 0;
    for (let at = 0; at < 40; at++) {
      now = at * 1_000;
      for (const name of ["a", "b"]) watch.heard(name, now);
      watch.mark("a", at % 2 === 0);
      // Repeated queries add nothing.
      for (const _ of [0, 1, 2]) watch.decision("a", now);
    }
    const history = decided();
    expect(history).toHaveLength(16);
    expect(history.slice(-2)).toEqual([
      { agoMs: 1_000, decision: "route", label: "healthy" },
      { agoMs: 0, decision: "drain", label: expect.any(String) },
    ]);
    // A new connection keeps the history.
    watch.remove("a");
    watch.add("a", now);
    expect(watch.decision("a", now)).toBe("route");
    expect(decided()).toHaveLength(16);
    expect(decided().at(-1)?.decision).toBe("route");
  });

  it("are not counted once given up, so the next failure is not retained because of them (AD-19.32)", () => {
    const watch = failing(3, 6);
    for (const name of NAMES) watch.decision(name, 30_000);
    watch.heard("e", 60_000);
    watch.heard("f", 60_000);
    // Four of six fail by now, and one of the three that are left.
    expect(watch.decision("d", 60_000)).toBe("evict");
  });

  it("are idle, not stuck, right after their start", () => {
    const watch = new NodeWatch();
    watch.add("a", 0);
    for (const at of [0, 1, 2, 3]) {
      watch.report("a", true, IDLE, at * WATCH_MS);
      expect(watch.signals(at * WATCH_MS)).toMatchObject([{ progress: "idle" }]);
    }
  });

  it("are new, not behind, when their counters restart", () => {
    const watch = new NodeWatch();
    watch.add("a", 0);
    watch.report("a", true, { taken: 9, done: 9, open: 4 }, 0);
    watch.report("a", true, { taken: 2, done: 1, open: 4 }, WATCH_MS);
    expect(watch.decision("a", WATCH_MS)).toBe("route");
    watch.report("a", true, { taken: 2, done: 1, open: 4 }, 2 * WATCH_MS);
    expect(watch.decision("a", 2 * WATCH_MS)).toBe("drain");
  });

  it("ignore reports of an unknown node", () => {
    const watch = new NodeWatch();
    watch.report("stranger", false, IDLE, 0);
    watch.missed("stranger");
    expect([watch.decision("stranger", 99_000), watch.views(99_000)]).toEqual(["route", []]);
  });
});
