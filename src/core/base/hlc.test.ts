import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareHlc, HLC_DRIFT_MS_MAX, type Hlc, HybridClock } from "./hlc.ts";
import { nodeId } from "./ids.ts";

const A = nodeId("A");
const B = nodeId("B");

function received(clock: HybridClock, remote: Hlc, physicalMs: number): Hlc {
  const result = clock.receive(remote, physicalMs);
  if (!result.ok) throw new Error("refused");
  return result.hlc;
}

describe("hybrid logical clock", () => {
  it("follows the golden trace (HLC-1, HLC-2)", () => {
    const [a, b] = [new HybridClock(A), new HybridClock(B)];
    const sent = a.tick(100);
    expect(sent).toEqual({ wallMs: 100, logical: 0, node: A });
    const answer = received(b, sent, 95);
    expect(answer).toEqual({ wallMs: 100, logical: 1, node: B });
    expect(received(a, answer, 100)).toEqual({ wallMs: 100, logical: 2, node: A });
    expect(a.tick(101)).toEqual({ wallMs: 101, logical: 0, node: A });
  });

  it.each([
    ["all walls equal: above both counters", [100, 3], [100, 7], 100, [100, 8]],
    ["ours is newest: our counter rises", [100, 3], [99, 7], 98, [100, 4]],
    ["theirs is newest: their counter rises", [99, 3], [100, 7], 98, [100, 8]],
    ["physical time is newest: the counter starts again", [99, 3], [98, 7], 100, [100, 0]],
    ["physical time equals theirs", [99, 3], [100, 7], 100, [100, 8]],
  ] as const)("merges when %s (HLC-2)", (_, own, remote, physicalMs, expected) => {
    const clock = new HybridClock(A);
    clock.recover({ wallMs: own[0], logical: own[1] });
    const stamp = received(clock, { wallMs: remote[0], logical: remote[1], node: B }, physicalMs);
    expect([stamp.wallMs, stamp.logical, stamp.node]).toEqual([...expected, A]);
  });

  it("keeps rising when the physical clock steps back", () => {
    const clock = new HybridClock(A);
    const stamps = [1_000, 1_000, 400, 0, -5, 1_001].map((physical) => clock.tick(physical));
    const sorted = [...stamps].sort(compareHlc);
    expect(stamps).toEqual(sorted);
    expect(stamps.at(-1)).toMatchObject({ wallMs: 1_001, logical: 0 });
  });

  // G-6
  it("refuses and counts what is beyond the drift bound, and does not merge it (HLC-5)", () => {
    const clock = new HybridClock(A);
    const before = clock.tick(5_000);
    const edge = { wallMs: 5_000 + HLC_DRIFT_MS_MAX, logical: 0 };
    expect(clock.receive({ ...edge, wallMs: edge.wallMs + 1 }, 5_000)).toEqual({
      ok: false,
      refusal: { code: "CLOCK_SKEW", aheadMs: 10_001, driftMsMax: 10_000 },
    });
    expect(clock.current).toEqual(before);
    expect(clock.refused).toBe(1);
    expect(clock.receive(edge, 5_000).ok).toBe(true);
    expect(clock.refused).toBe(1);
  });

  // HLC-4
  it("continues above its recovered log under its own name, and waits if that lies too far ahead", () => {
    const clock = new HybridClock(A);
    for (const wallMs of [700, 90_000, 300]) clock.recover({ wallMs, logical: 4 });
    expect(clock.current).toEqual({ wallMs: 90_000, logical: 4, node: A });
    expect(clock.waitMs(50_000)).toBe(30_000);
    expect(clock.waitMs(80_000)).toBe(0);
    expect(clock.tick(60_000)).toEqual({ wallMs: 90_000, logical: 5, node: A });
  });

  it("carries a full counter into the wall time: a peer's number cannot stop the node", () => {
    const clock = new HybridClock(A);
    const remote = { wallMs: 10, logical: Number.MAX_SAFE_INTEGER, node: B };
    expect(received(clock, remote, 10)).toEqual({ wallMs: 11, logical: 0, node: A });
  });
});

describe("a graph of messages over clocks that step and nodes that restart", () => {
  type Move =
    | { kind: "local"; node: number }
    | { kind: "send"; node: number; to: number }
    | { kind: "step"; node: number; by: number }
    | { kind: "restart"; node: number };
  const node = fc.nat(3);
  const move: fc.Arbitrary<Move> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("local" as const), node }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant("send" as const), node, to: node }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("step" as const),
        node,
        by: fc.integer({ min: -6_000, max: 6_000 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), node }) },
  );

  it("keeps stamp(A) < stamp(B) for every causal pair, and every stamp unique (HLC-3)", () => {
    let refused = 0;
    fc.assert(
      fc.property(fc.array(move, { minLength: 40, maxLength: 120 }), (moves) => {
        const world = new World();
        for (const one of moves) world.play(one);
        world.check();
        refused += world.refused;
      }),
      { numRuns: 300 },
    );
    expect(refused).toBeGreaterThan(0);
  });

  interface Event {
    readonly hlc: Hlc;
    /** Indices of the events that happened before this one. */
    readonly past: ReadonlySet<number>;
  }

  class World {
    readonly events: Event[] = [];
    readonly clocks = [0, 1, 2, 3].map((at) => new HybridClock(nodeId(`n${at}`)));
    readonly physical = [100_000, 100_000, 96_000, 104_000];
    readonly lastOf: (number | null)[] = [null, null, null, null];
    refused = 0;

    play(one: Move): void {
      const clock = this.clocks[one.node] as HybridClock;
      const physical = this.physical[one.node] as number;
      if (one.kind === "step") this.physical[one.node] = physical + one.by;
      else if (one.kind === "restart") this.restart(one.node);
      else {
        const sent = this.record(one.node, clock.tick(physical), null);
        if (one.kind === "send" && one.to !== one.node) this.deliver(sent, one.to);
      }
    }

    deliver(sent: number, to: number): void {
      const clock = this.clocks[to] as HybridClock;
      const stamp = (this.events[sent] as Event).hlc;
      const result = clock.receive(stamp, this.physical[to] as number);
      if (result.ok) this.record(to, result.hlc, sent);
      else this.refused++;
    }

    /** Only the log survives: the stamps of this node's own events, without the name. */
    restart(at: number): void {
      const clock = new HybridClock(nodeId(`n${at}`));
      for (const { hlc } of this.events) {
        if (hlc.node === `n${at}`) clock.recover({ wallMs: hlc.wallMs, logical: hlc.logical });
      }
      this.clocks[at] = clock;
    }

    record(at: number, hlc: Hlc, cause: number | null): number {
      const past = new Set<number>();
      for (const parent of [this.lastOf[at] ?? null, cause]) {
        if (parent === null) continue;
        past.add(parent);
        for (const older of this.events[parent]?.past ?? []) past.add(older);
      }
      this.events.push({ hlc, past });
      this.lastOf[at] = this.events.length - 1;
      return this.events.length - 1;
    }

    check(): void {
      const names = this.events.map(({ hlc }) => `${hlc.wallMs}/${hlc.logical}/${hlc.node}`);
      expect(new Set(names).size).toBe(names.length);
      for (const { hlc, past } of this.events) {
        for (const at of past) {
          if (compareHlc((this.events[at] as Event).hlc, hlc) >= 0) {
            throw new Error(`${names[at]} happened before ${hlc.wallMs}/${hlc.logical}`);
          }
        }
      }
    }
  }
});
