import { describe, expect, it } from "vitest";
import { COUNTER_JUMP_MAX, COUNTER_MAX } from "../../base/ids.ts";
import type { MemberState } from "./messages.ts";
import { STATE_BYTES_MAX } from "./messages.ts";
import { alive, at, Bench, dead, id, inc, left, record, suspect } from "./testing/bench.ts";
import { UNRESTRAINED } from "./types.ts";

const gossip = { kind: "gossip" } as const;
const line = (name: string, status: MemberState["status"], number = 1): MemberState => ({
  node: record(name),
  incarnation: inc(number),
  status,
});

describe("what news does", () => {
  it("B-8: a suspicion that was refuted meanwhile causes no death", () => {
    const bench = new Bench().meet("a", "b", "c", "d");
    bench.receive("a", gossip, [suspect("d", 1, "a")]);
    bench.receive("b", gossip, [alive("d", 2)]);
    bench.clear().advance(60_000, bench.answering("a", "b", "c", "d"));
    expect(bench.changes("failed")).toEqual([]);
  });

  it("B-26: alive about a new member joins it once, and is passed on", () => {
    const bench = new Bench().meet("a").clear();
    bench.receive("a", gossip, [alive("new", 1)]);
    bench.receive("a", gossip, [alive("new", 1)]);
    expect(bench.changes("join").map(({ member }) => member.id)).toEqual([id("new")]);
    bench.advance(1_000);
    expect(bench.sentAbout("new").length).toBeGreaterThan(0);
  });

  it.each(["alive", "suspect", "dead"] as const)(
    "B-27: alive at the same or a lower incarnation is ignored by one who holds it %s (SWIM-9)",
    (status) => {
      const bench = new Bench().meet("a", "b", "c", "d");
      bench.receive("a", gossip, [alive("b", 5)]);
      if (status === "suspect") bench.receive("a", gossip, [suspect("b", 5, "a")]);
      if (status === "dead") bench.receive("a", gossip, [dead("b", 5, "a")]);
      bench.clear();
      bench.receive("c", gossip, [alive("b", 5)]);
      bench.receive("c", gossip, [alive("b", 4)]);
      expect(bench.changes()).toEqual([]);
      expect(bench.status("b")).toBe(status);
    },
  );

  it("a death learned from others equals one we detected, and is counted separately (GOSS-5)", () => {
    const others = ["a", "c", "d"];
    const found = new Bench().meet("b", ...others).clear();
    found.advance(60_000, found.answering(...others));
    const heard = new Bench().meet("b", ...others).clear();
    heard.receive("a", gossip, [dead("b", 1, "a")]);
    heard.advance(60_000, heard.answering(...others));
    for (const bench of [found, heard]) {
      expect(bench.status("b")).toBe("dead");
      expect(bench.changes("failed").map(({ member }) => member.id)).toEqual([id("b")]);
      expect(bench.sentAbout("b").some(({ kind }) => kind === "dead")).toBe(true);
      bench.clear().advance(20_000, bench.answering(...others));
      expect(bench.sent("ping").map(({ to }) => to)).not.toContain(at("b"));
    }
    const counts = [found, heard].map(({ swim }) => swim.snapshot().counts);
    expect(counts.map(({ deaths }) => deaths)).toEqual([1, 1]);
    expect(counts.map(({ gossipInformedDeaths }) => gossipInformedDeaths)).toEqual([0, 1]);
  });

  it("B-28: alive at a higher incarnation clears a suspicion without a join event", () => {
    const bench = new Bench().meet("a", "b", "c", "d");
    bench.receive("a", gossip, [suspect("b", 1, "a")]);
    bench.clear().receive("a", gossip, [alive("b", 2)]);
    expect(bench.changes().map(({ kind }) => kind)).toEqual(["refute"]);
    expect(bench.status("b")).toBe("alive");
  });

  it("B-29: a changed record is an update", () => {
    const bench = new Bench().meet("a").clear();
    const node = { ...record("a"), meta: Uint8Array.of(1) };
    bench.receive("a", gossip, [{ kind: "alive", node, incarnation: inc(2) }]);
    expect(bench.changes().map(({ kind }) => kind)).toEqual(["update"]);
    expect(bench.swim.look(id("a"))?.record.meta).toEqual(Uint8Array.of(1));
  });

  it("B-30: alive about ourselves with another record is refuted above it, our own record kept", () => {
    const bench = new Bench().meet("a").clear();
    const node = { ...record("me"), meta: Uint8Array.of(9) };
    bench.receive("a", gossip, [{ kind: "alive", node, incarnation: inc(40) }]);
    expect(bench.swim.incarnation).toBe(41);
    expect(bench.swim.snapshot().self.meta).toEqual(new Uint8Array(0));
    bench.advance(1_000);
    expect(bench.sentAbout("me")).toContainEqual(alive("me", 41));
  });

  it("B-31: suspect and dead about somebody unknown are ignored", () => {
    const bench = new Bench().meet("a").clear();
    bench.receive("a", gossip, [suspect("x", 1, "a"), dead("y", 1, "a")]);
    expect(bench.changes()).toEqual([]);
    expect(bench.swim.sizes().members).toBe(1);
  });

  it("B-32: older suspect and dead are ignored", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [alive("b", 7)]);
    bench.clear().receive("a", gossip, [suspect("b", 6, "a"), dead("b", 6, "a")]);
    expect(bench.changes()).toEqual([]);
    expect(bench.status("b")).toBe("alive");
  });

  it("B-33: a second suspect of the same accuser moves no time and is not passed on", () => {
    const bench = new Bench().meet("a", "b", "c", "d");
    bench.receive("a", gossip, [suspect("b", 1, "a")]);
    const since = bench.swim.look(id("b"))?.changedAt;
    bench.advance(1_900, bench.answering("a", "c", "d"));
    const queued = bench.swim.sizes().queue;
    bench.clear().receive("c", gossip, [suspect("b", 1, "a")]);
    expect(bench.changes()).toEqual([]);
    expect(bench.swim.look(id("b"))?.changedAt).toBe(since);
    expect(bench.swim.sizes().queue).toBe(queued);
  });

  it.each([
    ["suspect", suspect("me", 12, "b")],
    ["dead", dead("me", 12, "b")],
    ["left", left("me", 12, "b")],
  ])("B-34: %s about ourselves is refuted above the accusation, and we stay", (_, accusation) => {
    const bench = new Bench().meet("a", "b").clear();
    bench.receive("a", gossip, [accusation]);
    expect(bench.swim.incarnation).toBe(13);
    expect(bench.swim.snapshot().leaving).toBe(false);
    bench.advance(500);
    expect(bench.sentAbout("me")).toContainEqual(alive("me", 13));
  });

  it("B-34: an accusation that we refuted long ago is refuted again, directly", () => {
    const bench = new Bench({ ceiling: 50 }).meet("a").clear();
    bench.receive("a", { kind: "ping", sequence: 1, target: id("me") }, [dead("me", 3, "a")]);
    expect(bench.swim.incarnation).toBe(51);
    const [answer] = bench.sent("gossip");
    expect([answer?.to, answer?.packet.updates[0]]).toEqual([at("a"), alive("me", 51)]);
  });

  it("B-35: a left member may rejoin from another address, a dead one after the reclaim time (C20-27)", () => {
    const bench = new Bench().meet("a", "b", "c");
    const moved = (name: string, number: number) =>
      ({
        kind: "alive",
        node: record(name, "manager", "elsewhere:1"),
        incarnation: inc(number),
      }) as const;
    bench.receive("a", gossip, [moved("b", 2)]);
    expect(bench.swim.look(id("b"))?.record.address).toBe(at("b"));
    expect(bench.effects).toContainEqual(
      expect.objectContaining({ kind: "warning", code: "NAME_CONFLICT" }),
    );
    bench.receive("a", gossip, [left("b", 1), dead("c", 1, "a")]);
    bench.receive("a", gossip, [moved("b", 2), moved("c", 2)]);
    expect(bench.status("b")).toBe("alive");
    expect(bench.swim.look(id("b"))?.record.address).toBe("elsewhere:1");
    expect(bench.status("c")).toBe("dead");
    bench.advance(31_000, bench.answering("a", "b"));
    const after = {
      kind: "alive",
      node: record("c", "manager", "new:1"),
      incarnation: inc(3),
    } as const;
    bench.receive("a", gossip, [after]);
    expect(bench.status("c")).toBe("alive");
  });

  it("B-36: evidence about a dead member raises the stored incarnation, so that a late alive stays dead", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [dead("b", 1, "a")]);
    bench.receive("a", gossip, [dead("b", 10, "a")]);
    bench.receive("a", gossip, [alive("b", 2)]);
    expect(bench.status("b")).toBe("dead");
    expect(bench.swim.look(id("b"))?.incarnation).toBe(10);
    bench.receive("a", gossip, [alive("b", 11)]);
    expect(bench.status("b")).toBe("alive");
  });

  it("B-37: leaving is final: a queued alive is dropped and an accusation is not refuted", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [suspect("me", 1, "b")]);
    bench.clear().step({ kind: "leave" });
    bench.receive("a", gossip, [dead("me", 5, "b")]);
    bench.advance(6_000);
    expect(bench.sentAbout("me").every(({ kind }) => kind === "left")).toBe(true);
    expect(bench.effects).toContainEqual({ kind: "leaveDone" });
  });

  it("B-37: a lonely member leaves at once", () => {
    const bench = new Bench().clear();
    bench.step({ kind: "leave" });
    expect(bench.effects).toContainEqual({ kind: "leaveDone" });
  });

  it("B-38: push/pull: a remote dead becomes suspect, left stays left, an unknown alive joins", () => {
    const bench = new Bench().meet("a", "b", "c", "d").clear();
    bench.sync("a", [
      line("a", "alive"),
      line("b", "dead"),
      line("c", "left"),
      line("new", "alive"),
      line("d", "alive"),
    ]);
    expect([bench.status("b"), bench.status("c"), bench.status("new")]).toEqual([
      "suspect",
      "left",
      "alive",
    ]);
    expect(bench.changes().map(({ kind, member }) => `${kind} ${member.id}`)).toEqual([
      "suspect b",
      "leave c",
      "join new",
    ]);
    const reply = bench.effects.find((effect) => effect.kind === "answerStream");
    expect(reply).toMatchObject({
      packet: { message: { kind: "syncReply", members: { length: 6 } } },
    });
  });

  it("B-39: dead members receive gossip for 30 s, stay rejoin candidates, and are forgotten after a day", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [dead("b", 1, "a")]);
    bench.clear();
    for (let i = 0; i < 60; i++) {
      bench.step({ kind: "broadcast", payload: Uint8Array.of(i) });
      bench.advance(1_000, bench.answering("a"));
    }
    const toDead = bench.sent("gossip").filter(({ to }) => to === at("b"));
    expect(toDead.length).toBeGreaterThan(0);
    const tried = bench.effects.filter(
      (effect) => effect.kind === "openStream" && effect.to === at("b"),
    );
    expect(tried.length).toBeGreaterThan(0);
    expect(bench.status("b")).toBe("dead");
    bench.clear().advance(25 * 3_600_000, bench.answering("a"));
    expect(bench.status("b")).toBeUndefined();
    expect(bench.changes("forget").map(({ why }) => why)).toEqual(["reaped"]);
    bench.clear().advance(60_000, bench.answering("a"));
    const still = bench.effects.some(
      (effect) => effect.kind === "openStream" && effect.to === at("b"),
    );
    expect(still).toBe(true);
  });
});

describe("B-52e: two members with one name", () => {
  const dispute = (answers: readonly string[]): Bench => {
    const bench = new Bench().meet("a", "b", "c").clear();
    const rival = record("me", "manager", "rival:7946");
    bench.receive("a", gossip, [{ kind: "alive", node: rival, incarnation: inc(1) }]);
    const asked = bench.sent("nameQuery");
    ["a", "b", "c"].forEach((from, index) => {
      const address = at(answers[index] ?? "me");
      const sequence = asked.find(({ to }) => to === at(from))?.message.sequence ?? 0;
      bench.receive(from, { kind: "nameAnswer", sequence, id: id("me"), address });
    });
    return bench.advance(10_000, bench.answering("a", "b", "c"));
  };

  it("the member that most peers know elsewhere gives the name up", () => {
    expect(dispute(["rival", "rival", "me"]).effects).toContainEqual({
      kind: "nameLost",
      rival: at("rival"),
    });
  });

  it("the member that most peers know here stays, above its rival", () => {
    const bench = dispute(["me", "rival", "me"]);
    expect(bench.effects.some(({ kind }) => kind === "nameLost")).toBe(false);
    expect(bench.swim.incarnation).toBe(2);
  });

  it("ignores answers in invented names or from peers that were not asked", () => {
    const bench = new Bench().meet("a", "b", "c").clear();
    const rival = record("me", "manager", "rival:7946");
    bench.receive("a", gossip, [{ kind: "alive", node: rival, incarnation: inc(1) }]);
    const own = bench.sent("nameQuery").find(({ to }) => to === at("a"))?.message.sequence ?? 0;
    const liars = ["a", "b", "c", ...Array.from({ length: 20 }, (_, i) => `x${i}`)];
    for (const from of liars) {
      const address = at("rival");
      bench.receive(from, { kind: "nameAnswer", sequence: own, id: id("me"), address });
    }
    bench.advance(10_000, bench.answering("a", "b", "c"));
    expect(bench.effects.some(({ kind }) => kind === "nameLost")).toBe(false);
  });

  it("two rivals do not race: a dispute occurs at most twice a minute", () => {
    const bench = new Bench().meet("a");
    for (let i = 0; i < 50; i++) {
      const rival = record("me", "manager", "rival:7946");
      bench.receive("a", gossip, [{ kind: "alive", node: rival, incarnation: inc(100 + i) }]);
      bench.advance(200, bench.answering("a"));
    }
    expect(bench.swim.incarnation).toBeLessThanOrEqual(102);
  });
});

describe("members never reached", () => {
  it("are not accused, whatever gossip says, and dropped instead of declared dead (AD-29, CONF-2)", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [alive("x", 1), alive("y", 1)]);
    bench.clear().receive("a", gossip, [suspect("x", 1, "a"), dead("y", 1, "a")]);
    expect(bench.status("x")).toBe("alive");
    expect(bench.status("y")).toBeUndefined();
    expect(bench.changes().map(({ kind }) => kind)).toEqual(["forget"]);
    bench.receive("a", gossip, [alive("y", 1)]);
    expect(bench.status("y")).toBeUndefined();
  });

  it.each([
    ["manager", 105_000],
    ["gate", 145_000],
    ["worker", 180_000],
  ] as const)(
    "a %s that never answers is dropped after %d ms without a word of death (AD-35, AD-35.22)",
    (role, ms) => {
      const bench = new Bench().meet("a");
      const node = record("ghost", role);
      bench.receive("a", gossip, [{ kind: "alive", node, incarnation: inc(1) }]);
      bench.clear();
      bench.advance(ms - 3_000, bench.answering("a"));
      expect(bench.status("ghost")).toBe("alive");
      bench.advance(6_000, bench.answering("a"));
      expect(bench.status("ghost")).toBeUndefined();
      expect(bench.changes("failed")).toEqual([]);
      expect(bench.changes("suspect")).toEqual([]);
      const warned = bench.effects.filter(
        (effect) => effect.kind === "warning" && effect.code === "UNCONFIRMED_PEER",
      );
      expect(warned).toHaveLength(1);
    },
  );

  it.each([
    ["gate", 1, 120],
    ["gate", 3, 360],
    ["gate", 20, 360],
    ["manager", 3, 270],
    ["manager", 20, 450],
    ["worker", 3, 540],
    ["worker", 20, 1_800],
  ] as const)(
    "a %s waits by a load of %d for %d s before it is asked or dropped (AD-35.21, AD-35.23, AD-35.24)",
    (role, load, seconds) => {
      const bench = new Bench().meet("a");
      bench.step({ kind: "restrain", restraint: { ...UNRESTRAINED, timeouts: load } });
      const node = record("ghost", role);
      bench.receive("a", gossip, [{ kind: "alive", node, incarnation: inc(1) }]);
      expect(bench.swim.waits(id("ghost"))?.passiveMs).toBe(seconds * 1_000);
      bench.advance(seconds * 1_000 - 100, bench.answering("a"));
      expect(bench.swim.snapshot().peers.attempts[role]).toBe(0);
      expect(bench.status("ghost")).toBe("alive");
      // Rounds of a loaded member are longer.
      bench.advance(load * 1_000 + 200, bench.answering("a"));
      const { attempts, removed } = bench.swim.snapshot().peers;
      expect([attempts[role], removed[role]]).toEqual(role === "worker" ? [0, 1] : [1, 0]);
    },
  );

  it.each([
    ["manager", 105, 180],
    ["gate", 145, 240],
    ["worker", 180, 360],
  ] as const)(
    "a %s dropped after %d s is not learned again for %d s, unless it comes itself (AD-35.32)",
    (role, seconds, awaySeconds) => {
      const node = record("ghost", role);
      const aliveAt = (number: number) =>
        ({ kind: "alive", node, incarnation: inc(number) }) as const;
      const dropped = (): Bench => {
        const bench = new Bench().meet("a");
        bench.receive("a", gossip, [aliveAt(1)]);
        bench.advance(seconds * 1_000 + 3_000, bench.answering("a"));
        expect(bench.status("ghost")).toBeUndefined();
        return bench;
      };
      const secondHand = dropped();
      secondHand.receive("a", gossip, [aliveAt(1)]);
      secondHand.advance((awaySeconds - 10) * 1_000, secondHand.answering("a"));
      secondHand.receive("a", gossip, [aliveAt(1)]);
      expect(secondHand.status("ghost")).toBeUndefined();
      secondHand.advance(10_000, secondHand.answering("a"));
      secondHand.receive("a", gossip, [aliveAt(1)]);
      expect(secondHand.status("ghost")).toBe("alive");
      const restarted = dropped();
      restarted.receive("a", gossip, [aliveAt(2)]);
      expect(restarted.status("ghost")).toBe("alive");
      const itself = dropped();
      itself.receive("ghost");
      itself.receive("ghost", gossip, [aliveAt(1)]);
      expect(itself.swim.look(id("ghost"))).toMatchObject({ status: "alive", confirmed: true });
    },
  );

  // CONF-7, CONF-8
  it("are confirmed by a direct message, once, and never by gossip about them", () => {
    const bench = new Bench().meet("a");
    bench.receive("a", gossip, [alive("x", 1)]);
    expect(bench.swim.look(id("x"))?.confirmed).toBe(false);
    bench.receive("x");
    bench.receive("x");
    expect(bench.changes("confirmed").filter(({ member }) => member.id === id("x"))).toHaveLength(
      1,
    );
  });

  it("do not count as members, and receive news only where there are too few others (CONF-4)", () => {
    const strangers = Array.from({ length: 40 }, (_, number) => `x${number}`);
    const receivers = (...reached: string[]) => {
      const bench = new Bench().meet(...reached);
      for (let from = 0; from < strangers.length; from += 5)
        bench.receive(
          "a",
          gossip,
          strangers.slice(from, from + 5).map((name) => alive(name, 1)),
        );
      bench.clear().step({ kind: "broadcast", payload: Uint8Array.of(1) });
      expect(bench.swim.sizes().members).toBe(reached.length + strangers.length);
      expect(bench.swim.liveCount).toBe(reached.length + 1);
      bench.advance(900);
      return new Set(bench.sent("gossip").map(({ to }) => to));
    };
    // Gossip goes to three at a time: with four others no stranger is included, with one they are.
    const four = ["a", "b", "c", "d"];
    expect([...receivers(...four)].every((to) => four.some((name) => at(name) === to))).toBe(true);
    const few = [...receivers("a")];
    expect(few).toContain(at("a"));
    expect(few.some((to) => strangers.some((name) => at(name) === to))).toBe(true);
  });

  it("a configured member that never answers is warned about and never dropped (AD-35.31)", () => {
    const bench = new Bench({ seeds: [at("ghost")] }).meet("a");
    bench.receive("a", gossip, [alive("ghost", 1), alive("other", 1)]);
    bench.clear().advance(3_600_000, bench.answering("a"));
    expect([bench.status("ghost"), bench.status("other")]).toEqual(["alive", undefined]);
    const warned = bench.effects.flatMap((one) => (one.kind === "warning" ? [one.code] : []));
    expect(warned.filter((code) => code === "UNCONFIRMED_PEER")).toHaveLength(2);
    expect(warned.filter((code) => code === "UNCONFIRMED_REMOVED")).toHaveLength(1);
  });

  it("a configured address that never answers is tried for ever (CONF-3)", () => {
    const bench = new Bench({ seeds: [at("seed")] });
    bench.advance(3_600_000);
    const late = bench
      .clear()
      .advance(60_000)
      .effects.filter((effect) => effect.kind === "openStream");
    expect(late.length).toBeGreaterThan(0);
  });

  it("a flood of names stays within its bound, and a real newcomer still enters", () => {
    const bench = new Bench({ config: { unconfirmedMax: 50 } }).meet("a");
    for (let i = 0; i < 500; i++) bench.receive("a", gossip, [alive(`bogus${i}`, 1)]);
    expect(bench.swim.sizes().unconfirmed).toBeLessThanOrEqual(50);
    bench.sync("real", [line("real", "alive")], true);
    expect(bench.swim.look(id("real"))).toMatchObject({ status: "alive", confirmed: true });
  });

  it("a member evicted in a flood is learned again after some seconds", () => {
    const bench = new Bench({ config: { unconfirmedMax: 3 } }).meet("a");
    bench.receive("a", gossip, [alive("real", 1), alive("bogus1", 1), alive("bogus2", 1)]);
    bench.advance(6_000);
    bench.receive("a", gossip, [alive("bogus3", 1)]);
    expect(bench.status("real")).toBeUndefined();
    bench.receive("a", gossip, [alive("real", 1)]);
    expect(bench.status("real")).toBeUndefined();
    bench.advance(11_000);
    bench.receive("a", gossip, [alive("real", 1)]);
    expect(bench.status("real")).toBe("alive");
  });
});

describe("what rides along", () => {
  // EMB-5, CLOCK-5
  it("embedded states are passed on when newer, and only then; the message counts in any case", () => {
    const bench = new Bench().meet("a").clear();
    const state = (boot: number, version: number) => ({
      boot,
      version,
      body: Uint8Array.of(version),
    });
    for (const [boot, version] of [
      [1, 3],
      [1, 2],
      [1, 3],
      [2, 1],
      [1, 9],
      [2, 2],
    ] as const) {
      bench.receive("a", gossip, [], state(boot, version));
    }
    const taken = bench.effects.flatMap((effect) =>
      effect.kind === "peerState" ? [[effect.boot, effect.version]] : [],
    );
    expect(taken).toEqual([
      [1, 3],
      [2, 1],
      [2, 2],
    ]);
    expect(bench.swim.snapshot().counts.staleStates).toBe(3);
  });

  it("our own state rides on pings and acks with a rising version (EMB-1, EMB-3)", () => {
    const bench = new Bench().meet("a").clear();
    bench.step({ kind: "setState", body: Uint8Array.of(1) });
    bench.step({ kind: "setState", body: Uint8Array.of(2) });
    bench.receive("a", { kind: "ping", sequence: 1, target: id("me") });
    expect(bench.sent("ack")[0]?.packet.state).toEqual({
      boot: 7,
      version: 2,
      body: Uint8Array.of(2),
    });
  });

  it("user gossip is delivered once and passed on", () => {
    const bench = new Bench().meet("a", "b").clear();
    const update = {
      kind: "user",
      origin: id("a"),
      boot: 1,
      sequence: 1,
      payload: Uint8Array.of(5),
    } as const;
    bench.receive("a", gossip, [update]);
    bench.receive("b", gossip, [update]);
    expect(bench.effects.filter(({ kind }) => kind === "userEvent")).toHaveLength(1);
    bench.advance(300);
    expect(bench.sent("gossip").some(({ packet }) => packet.updates.includes(update))).toBe(true);
  });

  it("a member listed as dead is notified when it pings us, and can refute", () => {
    const bench = new Bench().meet("a", "b");
    bench.receive("a", gossip, [dead("b", 9, "a")]);
    bench.clear().receive("b", { kind: "ping", sequence: 4, target: id("me") });
    expect(bench.sent("ack")[0]?.packet.updates[0]).toEqual(dead("b", 9, "me"));
  });

  it("every datagram fits, however much gossip is queued (UDP-4)", () => {
    const bench = new Bench().meet("a");
    bench.step({ kind: "setState", body: new Uint8Array(400) });
    for (let i = 0; i < 1_000; i++)
      bench.receive("a", gossip, [alive(`member-with-a-long-name-${i}`, 1)]);
    bench.clear().advance(3_000, bench.answering("a"));
    for (const effect of bench.effects) {
      if (effect.kind === "send") expect(effect.packet.updates.length).toBeLessThan(30);
    }
  });

  // SWIM-10
  it("incarnations are above the persisted ceiling, and a new ceiling is written before they are announced", () => {
    const bench = new Bench({ ceiling: 64 });
    expect(bench.swim.incarnation).toBe(65);
    expect(bench.effects[0]).toEqual({ kind: "persistIncarnation", ceiling: 97 });
  });

  it("a protocol of another major version is refused and named (AD-25)", () => {
    const bench = new Bench().meet("a").clear();
    const node = { ...record("old"), versionMajor: 2 };
    bench.receive("a", gossip, [{ kind: "alive", node, incarnation: inc(1) }]);
    expect(bench.status("old")).toBeUndefined();
    expect(bench.effects).toContainEqual({
      kind: "warning",
      code: "VERSION_REFUSED",
      about: "old",
    });
  });
});

describe("implausible incarnations", () => {
  const warned = (bench: Bench, code: string): readonly string[] =>
    bench.effects.flatMap((effect) =>
      effect.kind === "warning" && effect.code === code ? [effect.about] : [],
    );

  it("an accusation of us far above our incarnation is ignored and raises an alarm", () => {
    const bench = new Bench({ ceiling: 40 }).meet("a", "b").clear();
    const own = bench.swim.incarnation;
    for (const number of [COUNTER_MAX, COUNTER_MAX - 41, own + COUNTER_JUMP_MAX + 1]) {
      bench.receive("a", gossip, [suspect("me", number, "a"), dead("me", number, "a")]);
      bench.receive("a", gossip, [left("me", number, "a"), alive("me", number)]);
    }
    expect(bench.swim.incarnation).toBe(own);
    expect(bench.effects.some(({ kind }) => kind === "persistIncarnation")).toBe(false);
    expect(warned(bench, "INCARNATION_JUMP")).toHaveLength(1);
    expect(bench.swim.snapshot().counts.warnings.INCARNATION_JUMP).toBe(12);
    bench.receive("a", gossip, [suspect("me", own + COUNTER_JUMP_MAX, "a")]);
    expect(bench.swim.incarnation).toBe(own + COUNTER_JUMP_MAX + 1);
  });

  it("an accusation of another member far above its incarnation changes nothing", () => {
    const bench = new Bench().meet("a", "b", "c").clear();
    const far = COUNTER_MAX;
    bench.receive("a", gossip, [suspect("b", far, "a"), dead("b", far, "a"), left("b", far, "a")]);
    bench.receive("a", gossip, [alive("b", far)]);
    expect(bench.swim.look(id("b"))).toMatchObject({ status: "alive", incarnation: 1 });
    expect(warned(bench, "INCARNATION_JUMP")).toEqual([`b from 1 to ${far}`]);
  });

  it("a member that we learned from a liar puts its number right itself", () => {
    const bench = new Bench().meet("a", "b").clear();
    bench.receive("a", gossip, [alive("new", COUNTER_MAX)]);
    expect(bench.swim.look(id("new"))?.incarnation).toBe(COUNTER_MAX);
    bench.receive("new", gossip);
    expect(bench.swim.look(id("new"))?.incarnation).toBe(1);
    bench.receive("a", gossip, [suspect("new", 1, "a")]);
    bench.receive("a", gossip, [alive("new", 2)]);
    expect(bench.status("new")).toBe("alive");
  });

  it("a member at the end of its numbers continues, and reports it", () => {
    const bench = new Bench({ ceiling: COUNTER_MAX }).meet("a");
    bench.receive("a", gossip, [suspect("me", COUNTER_MAX, "a")]);
    expect(bench.swim.incarnation).toBe(COUNTER_MAX);
    expect(warned(bench, "INCARNATION_EXHAUSTED")).toEqual(["me"]);
  });

  it("EMB-7: a state that is too large is cut, with a warning, and the member continues", () => {
    const bench = new Bench().meet("a").clear();
    bench.step({ kind: "setState", body: new Uint8Array(STATE_BYTES_MAX + 16).fill(7) });
    bench.receive("a", { kind: "ping", sequence: 1, target: id("me") });
    expect(bench.sent("ack")[0]?.packet.state?.body).toEqual(
      new Uint8Array(STATE_BYTES_MAX).fill(7),
    );
    expect(warned(bench, "STATE_CUT")).toEqual(["416 bytes"]);
  });
});
