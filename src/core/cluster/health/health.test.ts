import { describe, expect, it } from "vitest";
import { address, incarnation, nodeId, term } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { correlationLevel, evictionVerdict } from "./correlation.ts";
import {
  GLOBAL_SUSPICIONS_MAX,
  HIERARCHICAL_PROFILES,
  HierarchicalDetector,
  JOB_SUSPICIONS_MAX,
} from "./detector.ts";
import { FEDERATED_DEFAULTS, FederatedMonitor } from "./federated.ts";
import type { CrossClusterAck } from "./messages.ts";

const inc = incarnation;
const [x, y, me] = ["x", "y", "me"].map(nodeId) as [
  ReturnType<typeof nodeId>,
  ReturnType<typeof nodeId>,
  ReturnType<typeof nodeId>,
];
const suppliers = { memberCount: () => 30, jobMemberCount: () => 30, healthMultiplier: () => 1 };
const detector = (profile: keyof typeof HIERARCHICAL_PROFILES = "base") =>
  new HierarchicalDetector(HIERARCHICAL_PROFILES[profile], suppliers, 0);

/** Ticks as a driver would, until `ms`. */
function run(subject: HierarchicalDetector, from: number, ms: number) {
  const events = [];
  for (let at = subject.nextDeadline(); at <= ms; at = subject.nextDeadline()) {
    for (const event of subject.tick(Math.max(at, from))) events.push({ at, ...event });
  }
  return events;
}

describe("two-layer detection", () => {
  it("26 nodes confirming every 50 ms cannot keep a suspicion from ending (HFD-3, SWIM-11, WHEEL-6)", () => {
    const subject = detector();
    subject.suspectGlobal(x, inc(1), me, 0);
    for (let at = 50; at <= 5_000; at += 50) {
      for (let k = 0; k < 26; k++) subject.confirmGlobal(x, nodeId(`n${k}`), at);
    }
    const events = run(subject, 5_000, 31_000);
    expect(events).toHaveLength(1);
    expect(events[0]?.at).toBeLessThanOrEqual(30_000);
  });

  // AD-30, HFD-2
  it("a global death clears the node's job suspicions first, and is told once", () => {
    const subject = detector();
    for (const job of ["j1", "j2", "j3"]) subject.suspectJob(job, x, inc(1), me, 0);
    subject.suspectGlobal(x, inc(1), me, 0);
    for (const other of ["p", "q", "r"].map(nodeId)) subject.confirmGlobal(x, other, 1);
    const events = run(subject, 1, 9_000).filter(({ kind }) => kind === "globalDeath");
    expect(events).toHaveLength(1);
    expect([subject.suspicionCount, subject.statusOf(x)]).toEqual([0, "DEAD_GLOBAL"]);
  });

  it("a job death touches that job only (HFD-1, HFD-4)", () => {
    const subject = detector();
    subject.suspectJob("j1", x, inc(1), me, 0);
    run(subject, 0, 12_000);
    expect([
      subject.isAliveForJob("j1", x),
      subject.isAliveForJob("j2", x),
      subject.isAliveGlobal(x),
    ]).toEqual([false, true, true]);
    expect(subject.statusOf(x)).toBe("DEAD_JOB");
  });

  it("refutation and rejoin need a higher incarnation, and revive both layers", () => {
    const subject = detector();
    subject.suspectGlobal(x, inc(4), me, 0);
    expect([subject.refuteGlobal(x, inc(4)), subject.refuteGlobal(x, inc(5))]).toEqual([
      false,
      true,
    ]);
    subject.suspectGlobal(x, inc(5), me, 0);
    run(subject, 0, 31_000);
    expect([subject.clearGlobalDeath(x, inc(5)), subject.clearGlobalDeath(x, inc(6))]).toEqual([
      false,
      true,
    ]);
    expect(subject.statusOf(x)).toBe("ALIVE");
  });

  it("an answer for a job clears doubt and death for it, at the incarnation it always had", () => {
    const subject = detector();
    subject.suspectJob("j1", x, inc(3), me, 0);
    subject.suspectJob("j2", x, inc(3), me, 0);
    expect([subject.refuteJob("j1", x, inc(3)), subject.answeredJob("j1", x)]).toEqual([
      false,
      true,
    ]);
    expect(run(subject, 0, 60_000)).toMatchObject([{ kind: "jobDeath", job: "j2" }]);
    expect([subject.isAliveForJob("j1", x), subject.isAliveForJob("j2", x)]).toEqual([true, false]);
    expect([subject.answeredJob("j2", x), subject.answeredJob("j2", x)]).toEqual([true, false]);
    expect(subject.statusOf(x)).toBe("ALIVE");
  });

  it("a finished job ends its suspicions without a late call (HFD-10)", () => {
    const subject = detector();
    subject.suspectJob("j", x, inc(1), me, 0);
    subject.suspectJob("j", y, inc(1), me, 0);
    expect(subject.clearJob("j")).toBe(2);
    expect(run(subject, 0, 60_000)).toEqual([]);
  });

  it("a gate's 120 s suspicion ends at 120 s (WHEEL-3), and the 1,001st of a job is refused", () => {
    const gate = detector("gate");
    gate.suspectGlobal(x, inc(1), me, 0);
    const [event] = run(gate, 0, 130_000);
    expect(event?.at).toBe(120_000);
    const full = detector();
    for (let i = 0; i < JOB_SUSPICIONS_MAX; i++)
      full.suspectJob("j", nodeId(`n${i}`), inc(1), me, 0);
    expect([full.suspectJob("j", x, inc(1), me, 0), full.refusedCount]).toEqual([false, 1]);
    for (let i = 0; i < GLOBAL_SUSPICIONS_MAX; i++)
      full.suspectGlobal(nodeId(`n${i}`), inc(1), me, 0);
    expect([full.suspectGlobal(x, inc(1), me, 0), full.refusedCount]).toEqual([false, 2]);
  });
});

describe("when many fall at once", () => {
  it.each([
    [4, 1, "NONE"],
    [7, 2, "LOW"],
    [4, 2, "MEDIUM"],
    [3, 2, "HIGH"],
  ] as const)("of %d datacenters, %d bad: %s", (count, bad, level) => {
    expect(correlationLevel(count, new Array<number>(bad).fill(0), 1_000)).toBe(level);
  });

  // AD-19.31, AD-19.32
  it("of six workers three are evicted, four are held; one alone can be evicted", () => {
    expect([3, 4].map((failing) => evictionVerdict(6, failing).evict)).toEqual([true, false]);
    expect(evictionVerdict(1, 1).evict).toBe(true);
  });
});

describe("federated health", () => {
  const leader = address("leader:1");
  const monitor = (...datacenters: string[]) => {
    const subject = new FederatedMonitor(
      { cluster: "gates", node: me, address: address("me:1"), config: FEDERATED_DEFAULTS },
      new Random(1),
    );
    for (const datacenter of datacenters) subject.add(datacenter, leader, 0);
    return subject;
  };
  const ack = (
    datacenter: string,
    sequence: number,
    more: Partial<CrossClusterAck> = {},
  ): CrossClusterAck => ({
    kind: "xack",
    sequence,
    datacenter,
    node: x,
    incarnation: inc(1),
    isLeader: true,
    leaderTerm: term(1),
    leaderAddress: null,
    aggregate: {
      clusterSize: 3,
      healthyManagers: 3,
      workerCount: 9,
      healthyWorkers: 9,
      totalCores: 72,
      availableCores: 40,
      activeJobs: 1,
      activeWorkflows: 4,
      queueDepth: 0,
      health: "HEALTHY",
      healthReason: "",
    },
    coordinate: null,
    lastRttMs: 0,
    ...more,
  });

  /** Runs to `until`; datacenters in `answering` reply after 300 ms. Returns transitions and probe counts. */
  function play(
    subject: FederatedMonitor,
    from: number,
    until: number,
    answering: (dc: string, at: number) => boolean,
  ) {
    const moves: string[] = [];
    let probes = 0;
    const pending: { at: number; dc: string; sequence: number }[] = [];
    const owner = new Map<number, string>();
    let now = from;
    for (;;) {
      const next = Math.min(subject.nextDeadline() ?? until + 1, ...pending.map(({ at }) => at));
      if (next > until) return { moves, probes };
      now = Math.max(now, next);
      const due = pending.filter(({ at }) => at <= now);
      const effects = due.flatMap(({ dc, sequence }) => subject.onAck(ack(dc, sequence), now));
      for (const item of due) pending.splice(pending.indexOf(item), 1);
      effects.push(...subject.tick(now, null));
      const order = ["dc1", "dc2", "dc3", "dc4"].filter((dc) => subject.stateOf(dc) !== null);
      for (const effect of effects) {
        if (effect.kind === "changed") moves.push(`${effect.datacenter} ${effect.to}`);
        if (effect.kind !== "send") continue;
        probes++;
        const { sequence } = effect.probe;
        const dc =
          effect.to === leader && order.length === 1
            ? "dc1"
            : ((effect.to as string).split(":")[0] ?? "");
        owner.set(sequence, dc);
        if (answering(dc, now)) pending.push({ at: now + 300, dc, sequence });
      }
    }
  }
  const four = (): FederatedMonitor => {
    const subject = monitor();
    for (const dc of ["dc1", "dc2", "dc3", "dc4"]) subject.add(dc, address(`${dc}:1`), 0);
    return subject;
  };

  it("a 300 ms link without loss stays reachable, at one probe every two seconds", () => {
    const { moves, probes } = play(monitor("dc1"), 0, 600_000, () => true);
    expect(moves).toEqual(["dc1 REACHABLE"]);
    expect(Math.abs(probes - 300)).toBeLessThanOrEqual(1);
  });

  // AD-33a
  it("silence: suspected within 15 s, unreachable 30 s later; an ack in between saves it", () => {
    const subject = monitor("dc1");
    play(subject, 0, 20_000, () => true);
    expect(play(subject, 20_000, 36_000, () => false).moves).toEqual(["dc1 SUSPECTED"]);
    expect(play(subject, 36_000, 40_000, () => true).moves).toEqual(["dc1 REACHABLE"]);
    expect(play(subject, 40_000, 90_000, () => false).moves).toEqual([
      "dc1 SUSPECTED",
      "dc1 UNREACHABLE",
    ]);
  });

  it("four failures and an ack, for ever: never suspected", () => {
    const subject = monitor("dc1");
    let count = 0;
    const { moves } = play(subject, 0, 300_000, () => count++ % 5 === 0);
    expect(moves).toEqual(["dc1 REACHABLE"]);
  });

  it("all datacenters lost together are not evicted; one of four is (AD-33a.8, C40-3)", () => {
    const all = four();
    play(all, 0, 20_000, () => true);
    play(all, 20_000, 60_000, () => false);
    expect(["dc1", "dc2", "dc3", "dc4"].map((dc) => all.mayEvict(dc, 60_000))).toEqual([
      false,
      false,
      false,
      false,
    ]);
    const one = four();
    play(one, 0, 20_000, () => true);
    play(one, 20_000, 60_000, (dc) => dc !== "dc2");
    expect(["dc1", "dc2", "dc3"].map((dc) => one.mayEvict(dc, 60_000))).toEqual([
      false,
      true,
      false,
    ]);
    expect(one.healthyDatacenters()).toEqual(["dc1", "dc3", "dc4"]);
  });

  // C40-1, FED-5
  it("a new leader resets failures, and only its ack makes reachable; older acks are ignored", () => {
    const subject = monitor("dc1");
    const [send] = subject.tick(2_000, null);
    const sequence = send?.kind === "send" ? send.probe.sequence : 0;
    subject.retarget("dc1", address("new:1"));
    expect(subject.onAck(ack("dc1", sequence), 2_100)).toEqual([]);
    const [again] = subject.tick(4_000, null);
    const second = again?.kind === "send" ? again.probe.sequence : 0;
    subject.onAck(ack("dc1", second, { leaderTerm: term(7) }), 4_100);
    expect(subject.stateOf("dc1")).toBe("REACHABLE");
    const [third] = subject.tick(6_000, null);
    const stale = third?.kind === "send" ? third.probe.sequence : 0;
    expect(subject.onAck(ack("dc1", stale, { leaderTerm: term(6) }), 6_100)).toEqual([]);
  });
});
