/** Activities that a member reduces while its own process is slow. */

import { describe, expect, it } from "vitest";
import { Awareness } from "./awareness.ts";
import { SWIM_PROFILES } from "./config.ts";
import { at, Bench, id, inc, record, suspect } from "./testing/bench.ts";
import { type Restraint, UNRESTRAINED } from "./types.ts";

const PEERS = ["a", "b", "c", "d", "e"];

function restrained(restraint: Partial<Restraint>): Bench {
  const bench = new Bench().meet(...PEERS);
  bench.step({ kind: "restrain", restraint: { ...UNRESTRAINED, ...restraint } });
  return bench.clear();
}

/** Probe rounds until so many were begun or left out. */
function rounds(
  bench: Bench,
  count: number,
): { readonly probes: number; readonly skipped: number } {
  const before = bench.swim.snapshot().counts;
  for (;;) {
    bench.advance(1_000, bench.answering(...PEERS));
    const { probes, probesSkipped } = bench.swim.snapshot().counts;
    const done = {
      probes: probes - before.probes,
      skipped: probesSkipped - before.probesSkipped,
    };
    if (done.probes + done.skipped >= count) return done;
    bench.clear();
  }
}

describe("BP-3: of 10,000 probes", () => {
  it.each([
    ["none", 0, 0, 0],
    ["25 % at high", 0.25, 0.23, 0.27],
    ["50 % at severe", 0.5, 0.48, 0.52],
  ])("%s are skipped", (_, probesSkipped, least, most) => {
    const { probes, skipped } = rounds(restrained({ probesSkipped }), 10_000);
    const share = skipped / (probes + skipped);
    expect(share).toBeGreaterThanOrEqual(least);
    expect(share).toBeLessThanOrEqual(most);
  });
});

describe("BP-3: while all probes are skipped", () => {
  it("the leader is probed whenever it is its turn", () => {
    const bench = restrained({ probesSkipped: 1, leader: id("c") });
    bench.advance(20_000, bench.answering(...PEERS));
    const probed = bench.sent("ping").map(({ to }) => to);
    expect(probed.filter((one) => one === at("c"))).toHaveLength(4);
    expect(new Set(probed)).toEqual(new Set([at("c")]));
  });

  it("a suspect is probed and notified of the suspicion", () => {
    const bench = restrained({ probesSkipped: 1 });
    bench.receive("b", { kind: "gossip" }, [suspect("d", 1, "b")]);
    bench.advance(5_000);
    expect(bench.sent("ping").map(({ to }) => to)).toContain(at("d"));
  });

  it("one is sent in 16 intervals all the same, so that local health can get better", () => {
    const { probes, skipped } = rounds(restrained({ probesSkipped: 1 }), 160);
    expect(probes / (probes + skipped)).toBeCloseTo(1 / 16, 2);
    const bench = restrained({ probesSkipped: 1, timeouts: 3 });
    for (let times = 0; times < 7; times++) bench.step({ kind: "lag", lagMs: 400 });
    expect(bench.swim.healthScore).toBe(7);
    bench.advance(10 * 17_000, bench.answering(...PEERS));
    expect(bench.swim.healthScore).toBe(0);
  });
});

describe("BP-2: times are multiplied by the greater of level and local health", () => {
  it.each([
    [0, 1, 1, 1],
    [0, 3, 3, 3],
    [2, 1.25, 3, 1.5],
    [2, 2, 3, 2],
    [7, 3, 8, 3],
    [7, 1.5, 8, 2.75],
  ])("health %i and level x %d: probes x %d, suspicions x %d", (health, level, probes, load) => {
    const awareness = new Awareness(8);
    awareness.apply(health);
    awareness.setFloor(level);
    expect(awareness.scale(1_000)).toBe(probes * 1_000);
    expect(awareness.load).toBe(load);
  });

  it("suspicions of a slow member last longer, and are as before when it is well", () => {
    const bench = restrained({});
    const suspicionMs = () => bench.swim.waits(id("a"))?.suspicionMs ?? 0;
    const ordinary = suspicionMs();
    bench.step({ kind: "restrain", restraint: { ...UNRESTRAINED, timeouts: 2 } });
    expect(suspicionMs()).toBe(2 * ordinary);
    bench.step({ kind: "restrain", restraint: UNRESTRAINED });
    expect(suspicionMs()).toBe(ordinary);
  });
});

describe("how long a suspect has", () => {
  const WAN = SWIM_PROFILES.wan;
  it.each([
    ["a manager nearby", "manager", 50, 1, {}, 24, 4],
    ["one at ordinary distance", "manager", 100, 1, {}, 24, 4],
    ["one at twice that", "manager", 200, 1, {}, 48, 8],
    ["one at twice that, seen by a slow one", "manager", 200, 2, {}, 96, 16],
    ["one so far that it is bounded", "manager", 400, 2, {}, 120, 32],
    ["a gate, which is given three times as much at most", "gate", 50, 4, {}, 72, 12],
    ["a manager, which is given five times as much at most", "manager", 50, 6, {}, 120, 20],
    ["a worker, which is given ten times as much at most", "worker", 50, 11, {}, 120, 40],
    ["a worker, however far", "worker", 400, 2, {}, 48, 8],
    ["one that has more time than the bound anyway", "manager", 2_500, 3, WAN, 180, 120],
  ] as const)(
    "%s: a %s %d ms away, times %d (AD-35.41, AD-35.43)",
    (_, role, rttMs, load, config, seconds, confirmedSeconds) => {
      const bench = new Bench({ config });
      const node = record("far", role);
      bench.receive("far", { kind: "gossip" }, [{ kind: "alive", node, incarnation: inc(1) }]);
      let sent = { at: 0, sequence: 0 };
      while (sent.at === 0)
        bench.advance(1, ({ packet: { message } }) => {
          if (message.kind === "ping") sent = { at: bench.now, sequence: message.sequence };
        });
      bench.advance(sent.at + rttMs - bench.now);
      const ack = { kind: "ack", target: id("far"), relayed: false, rttMs: 0 } as const;
      bench.receive("far", { ...ack, sequence: sent.sequence });
      bench.meet(...PEERS);
      bench.step({ kind: "restrain", restraint: { ...UNRESTRAINED, timeouts: load } });
      expect(bench.swim.waits(id("far"))?.suspicionMs).toBeCloseTo(seconds * 1_000, 6);
      for (const from of PEERS) bench.receive(from, { kind: "gossip" }, [suspect("far", 1, from)]);
      bench.advance(confirmedSeconds * 1_000 - 100, bench.answering(...PEERS));
      expect(bench.status("far")).toBe("suspect");
      bench.advance(200);
      expect(bench.status("far")).toBe("dead");
    },
  );
});

describe("BP-1: a slow member", () => {
  /** Gossip packets, and news in the fullest packet, of the first ten seconds with much to send. */
  function gossiped(restraint: Partial<Restraint>): { packets: number; most: number } {
    const bench = restrained(restraint);
    for (let number = 0; number < 200; number++)
      bench.step({ kind: "broadcast", payload: new Uint8Array(60).fill(number) });
    bench.advance(10_000, bench.answering(...PEERS));
    const packets = bench.sent("gossip");
    return {
      packets: packets.length,
      most: Math.max(...packets.map(({ packet }) => packet.updates.length)),
    };
  }

  it("gossips less often", () => {
    expect(gossiped({ timeouts: 2 }).packets).toBeLessThan(0.6 * gossiped({}).packets);
  });

  it("puts less news into a packet", () => {
    expect(gossiped({ newsShare: 0.5 }).most).toBeLessThanOrEqual(0.6 * gossiped({}).most);
  });
});
