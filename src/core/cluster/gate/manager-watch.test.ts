import { describe, expect, it } from "vitest";
import type { ManagerHealth } from "../gate-messages.ts";
import { WATCH_MS } from "../overload/node-watch.ts";
import { ManagerWatch } from "./manager-watch.ts";

const WELL: ManagerHealth = {
  ...{ hasQuorum: true, accepting: true, accepted: 0, dispatched: 0, dispatchable: 0 },
};

/** Managers that have reported at 0. */
function watching(...names: readonly string[]): ManagerWatch {
  const watch = new ManagerWatch();
  for (const name of names) {
    watch.up(name, 0);
    watch.heard(name, { health: WELL, workers: 2 }, 0);
  }
  return watch;
}

function decisions(watch: ManagerWatch, now: number): readonly string[] {
  const seen = watch.views(now);
  const decided = seen.map(({ manager }) => watch.decision(manager, now));
  expect(seen.map(({ decision }) => decision)).toEqual(decided);
  return decided;
}

describe("managers as seen by a gate (AD-19)", () => {
  it("are used while nothing is known against them", () => {
    expect(decisions(watching("a", "b"), 1_000)).toEqual(["route", "route"]);
    expect(new ManagerWatch().decision("nobody", 0)).toBe("route");
  });

  it.each<[string, Partial<ManagerHealth>, number]>([
    ["has no quorum", { hasQuorum: false }, 2],
    ["takes no jobs", { accepting: false }, 2],
    ["has no workers", {}, 0],
  ])(
    "one that %s is drained, and used again when that is over (AD-19.14)",
    (_, change, workers) => {
      const watch = watching("a", "b");
      watch.heard("a", { health: { ...WELL, ...change }, workers }, 1_000);
      expect(decisions(watch, 1_000)).toEqual(["drain", "route"]);
      watch.heard("a", { health: WELL, workers: 2 }, 2_000);
      expect(decisions(watch, 2_000)).toEqual(["route", "route"]);
    },
  );

  it("are live for 30 s after their last answer, and until their third miss", () => {
    const silent = watching("a", "b");
    silent.heard("b", null, 20_000);
    expect(silent.decision("a", 29_999)).toBe("route");
    expect(silent.decision("a", 30_000)).toBe("evict");
    const deaf = watching("a", "b");
    deaf.missed("a");
    deaf.missed("a");
    expect(deaf.decision("a", 1_000)).toBe("route");
    deaf.missed("a");
    expect(deaf.decision("a", 1_000)).toBe("evict");
    deaf.heard("a", null, 2_000);
    expect(deaf.decision("a", 2_000)).toBe("route");
    expect(deaf.evicted).toBe(1);
  });

  it("are drained at once when they start no startable job, and evicted after 30 s (AD-19.7, AD-19.18)", () => {
    const watch = watching("a", "b", "c");
    const stuck = { ...WELL, accepted: 5, dispatchable: 3 };
    for (let at = 0; at <= 5 * WATCH_MS; at += WATCH_MS) {
      watch.heard("a", { health: stuck, workers: 2 }, at);
      for (const well of ["b", "c"]) watch.heard(well, { health: WELL, workers: 2 }, at);
      const expected = at < 2 * WATCH_MS ? "route" : at < 5 * WATCH_MS ? "drain" : "evict";
      expect([at, watch.decision("a", at)]).toEqual([at, expected]);
      expect(watch.isDegraded(at)).toBe(at >= 2 * WATCH_MS);
    }
    watch.heard("a", { health: { ...stuck, dispatched: 3 }, workers: 2 }, 6 * WATCH_MS);
    expect(watch.decision("a", 6 * WATCH_MS)).toBe("route");
  });

  it.each([
    [1, "degraded", "investigate"],
    [3, "slow", "investigate"],
    [8, "healthy", "route"],
  ])("one that starts %i of ten is %s: %s", (dispatched, label, decision) => {
    const watch = watching("a");
    const before = { ...WELL, accepted: 10, dispatchable: 10 };
    watch.heard("a", { health: before, workers: 1 }, WATCH_MS);
    const after = { ...before, dispatched, dispatchable: 10 - dispatched };
    watch.heard("a", { health: after, workers: 1 }, 2 * WATCH_MS);
    expect(watch.views(2 * WATCH_MS)).toMatchObject([{ decision }]);
    if (label === "healthy") expect(watch.views(2 * WATCH_MS)).toMatchObject([{ label }]);
  });

  it("are not stuck when nothing could start, whatever is queued (AD-19.15, AD-19.17)", () => {
    const watch = watching("a");
    const full = { ...WELL, accepted: 900, dispatchable: 0 };
    for (let at = 0; at < 10 * WATCH_MS; at += WATCH_MS)
      watch.heard("a", { health: full, workers: 1 }, at);
    expect(watch.decision("a", 9 * WATCH_MS)).toBe("route");
  });

  it("are not evicted when more than half of three or more fail, and that is counted; one of two is evicted", () => {
    const many = watching("a", "b", "c");
    many.heard("c", null, 25_000);
    expect(decisions(many, 31_000)).toEqual(["drain", "drain", "route"]);
    expect([many.evicted, many.held]).toEqual([0, 2]);
    const two = watching("a", "b");
    expect(decisions(two, 31_000)).toEqual(["evict", "evict"]);
    const one = watching("a", "b", "c");
    one.heard("b", null, 25_000);
    one.heard("c", null, 25_000);
    expect(decisions(one, 31_000)).toEqual(["evict", "route", "route"]);
  });

  it("are probed after an idle interval, and evaluated afresh after a reconnect", () => {
    const watch = watching("a", "b");
    watch.asked("a", 5_000);
    expect(watch.due(WATCH_MS)).toEqual(["b"]);
    watch.asked("b", WATCH_MS);
    expect(watch.nextDeadline()).toBe(5_000 + WATCH_MS);
    watch.down("a");
    watch.up("a", 100_000);
    expect(watch.decision("a", 100_000)).toBe("route");
  });
});
