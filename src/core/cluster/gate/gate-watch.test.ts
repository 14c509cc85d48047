import { describe, expect, it } from "vitest";
import type { GateHealth } from "../gate-messages.ts";
import { WATCH_MS } from "../overload/node-watch.ts";
import { OVERLOAD_STATES } from "../views.ts";
import { GateWatch } from "./gate-watch.ts";

const WELL: GateHealth = {
  ...{ hasDatacenter: true, datacenters: 2, pressure: "healthy", forwarded: 0, forwardable: 0 },
};

/** Gates that are connected and have reported at 0. */
function watching(...names: readonly string[]): GateWatch {
  const watch = new GateWatch("self", 0);
  for (const name of names) {
    watch.onPeer(name, true, 0);
    watch.onHealth(name, WELL, 0);
  }
  return watch;
}

function decisions(watch: GateWatch, now: number): readonly string[] {
  const seen = watch.views(now).filter(({ name }) => name !== "self");
  const decided = seen.map(({ name }) => watch.decision(name, now));
  expect(seen.map(({ decision }) => decision)).toEqual(decided);
  return decided;
}

/** Forwarded jobs of ten forwardable ones, for each band of progress. */
const FORWARDED = { normal: 8, slow: 3, degraded: 1, stuck: 0 } as const;
const BANDS = ["idle", "normal", "slow", "degraded", "stuck"] as const;

/** Rules as specified, in the order of their numbers. (AD-19.6 to AD-19.10, AD-19.20) */
function written(
  isSilent: boolean,
  { datacenters, hasDatacenter, pressure }: GateHealth,
  isDraining: boolean,
  band: (typeof BANDS)[number],
): string {
  const ready = hasDatacenter && datacenters > 0 && !["stressed", "overloaded"].includes(pressure);
  const rules: readonly (readonly [boolean, string])[] = [
    [isSilent, "evict"],
    [band === "stuck", "drain"],
    [(band === "slow" || band === "degraded") && ready && !isDraining, "investigate"],
    [!ready || isDraining, "drain"],
  ];
  return rules.find(([applies]) => applies)?.[1] ?? "route";
}

describe("gates as seen by a gate (AD-19.20 to AD-19.26)", () => {
  it("are classified as specified for every combination of reports", () => {
    const seen = new Set<string>();
    for (const isSilent of [false, true])
      for (const hasDatacenter of [false, true])
        for (const datacenters of [0, 1])
          for (const pressure of OVERLOAD_STATES)
            for (const isDraining of [false, true])
              for (const band of BANDS) {
                const said = { ...WELL, hasDatacenter, datacenters, pressure };
                const forwarded = band === "idle" ? 0 : FORWARDED[band];
                const open = band === "idle" ? 0 : 10;
                const watch = watching("a", "b", "c");
                watch.onHealth("a", { ...said, forwardable: open }, WATCH_MS);
                const after = { ...said, forwarded, forwardable: open - forwarded };
                watch.onHealth("a", after, 2 * WATCH_MS);
                watch.onDrains("a", isDraining);
                const now = 2 * WATCH_MS + (isSilent ? 30_000 : 29_999);
                for (const other of ["b", "c"]) watch.onHealth(other, WELL, now);
                const decision = written(isSilent, said, isDraining, band);
                const inputs = { isSilent, said, isDraining, band };
                expect({ ...inputs, decision: watch.decision("a", now) }).toEqual({
                  ...{ ...inputs, decision },
                });
                seen.add(decision);
              }
    expect([...seen].toSorted()).toEqual(["drain", "evict", "investigate", "route"]);
  });

  it("are evicted after three failed connections, and evaluated afresh when reachable (AD-19.1)", () => {
    const watch = watching("a", "b");
    watch.onPeer("a", false, 1_000);
    watch.onPeer("a", false, 2_000);
    expect(watch.decision("a", 2_000)).toBe("route");
    watch.onPeer("a", false, 3_000);
    expect(watch.decision("a", 3_000)).toBe("evict");
    watch.onPeer("a", true, 4_000);
    expect([watch.decision("a", 4_000), watch.evicted]).toEqual(["route", 1]);
  });

  it("of an older version report nothing, and are live while connected", () => {
    const watch = new GateWatch("self", 0);
    watch.onPeer("old", true, 0);
    expect(watch.decision("old", 600_000)).toBe("route");
    watch.onDrains("old", true);
    expect(watch.decision("old", 600_000)).toBe("drain");
    for (let miss = 0; miss < 3; miss++) watch.onPeer("old", false, 600_000);
    expect(watch.decision("old", 600_000)).toBe("evict");
  });

  it("are evicted after another 30 s without forwarding anything (AD-19.7, AD-19.21)", () => {
    const watch = watching("a", "b", "c");
    for (let at = 0; at <= 5 * WATCH_MS; at += WATCH_MS) {
      watch.onHealth("a", { ...WELL, forwarded: 4, forwardable: 3 }, at);
      for (const well of ["b", "c"]) watch.onHealth(well, WELL, at);
      const expected = at < 2 * WATCH_MS ? "route" : at < 5 * WATCH_MS ? "drain" : "evict";
      expect([at, watch.decision("a", at)]).toEqual([at, expected]);
    }
    watch.onHealth("a", { ...WELL, forwarded: 7 }, 6 * WATCH_MS);
    expect(watch.decision("a", 6 * WATCH_MS)).toBe("route");
  });

  it("are not blamed for jobs that wait for capacity (AD-19.21, C-5)", () => {
    const watch = watching("a");
    for (let at = 0; at < 10 * WATCH_MS; at += WATCH_MS)
      watch.onHealth("a", { ...WELL, forwarded: 900, forwardable: 0 }, at);
    expect(watch.decision("a", 9 * WATCH_MS)).toBe("route");
  });

  it("are not evicted when more than half of three or more fail, counted once each (AD-19.31 to AD-19.33)", () => {
    const watch = watching("a", "b", "c");
    watch.onHealth("c", WELL, 25_000);
    for (const now of [31_000, 32_000])
      expect(decisions(watch, now)).toEqual(["drain", "drain", "route"]);
    expect([watch.evicted, watch.held]).toEqual([0, 2]);
    watch.onHealth("b", WELL, 33_000);
    expect(decisions(watch, 33_000)).toEqual(["evict", "route", "route"]);
    expect([watch.evicted, watch.held]).toEqual([1, 2]);
    const two = watching("a", "b");
    expect(decisions(two, 31_000)).toEqual(["evict", "evict"]);
  });

  it("include the gate itself, evaluated by its own report alone (AD-19.26)", () => {
    const watch = watching("a", "b", "c");
    expect(watch.decision("self", 90_000)).toBe("route");
    watch.onHealth("self", { ...WELL, pressure: "stressed" }, 90_000);
    expect(watch.decision("self", 90_000)).toBe("drain");
    watch.onHealth("self", WELL, 91_000);
    watch.onDrains("self", true);
    expect(watch.decision("self", 91_000)).toBe("drain");
  });
});
