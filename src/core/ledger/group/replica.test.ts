import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { nodeId } from "../../base/ids.ts";
import { VSR_DEFAULTS } from "./config.ts";
import type { Sent } from "./testing/trio.ts";
import { Trio } from "./testing/trio.ts";

const { leaseMs, rankDelayMs, windowEntries, retransmitMs } = VSR_DEFAULTS;
const ids = (...names: string[]) => names.map(nodeId);
const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `e${from + index}`);

describe("normal operation", () => {
  it("commits what a quorum has on disk, in order, everywhere (VSR-17)", () => {
    const trio = new Trio();
    trio.propose("a", "x", "y");
    trio.settle();
    expect(trio.committed("a")).toEqual(["x", "y"]);
    trio.advance(200);
    expect(trio.committed("b")).toEqual(["x", "y"]);
    expect(trio.committed("c")).toEqual(["x", "y"]);
  });

  it("counts the primary only after its own sync (VSR-7)", () => {
    const trio = new Trio();
    trio.held.add("a");
    trio.cut("c");
    trio.propose("a", "x");
    trio.settle();
    expect(trio.committed("a")).toEqual([]);
    trio.sync("a");
    expect(trio.committed("a")).toEqual(["x"]);
  });

  it("sends no ack between append and sync, and acks once the entry is durable (VSR-3)", () => {
    const trio = new Trio();
    trio.held.add("b");
    trio.cut("c");
    trio.propose("a", "x");
    trio.settle();
    expect(trio.committed("a")).toEqual([]);
    trio.sync("b");
    trio.settle();
    expect(trio.committed("a")).toEqual(["x"]);
  });

  it("a replica that dies between sync and ack still has the entry", () => {
    const trio = new Trio();
    trio.lost = ({ message }) => message.kind === "prepareResponse";
    trio.propose("a", "x");
    trio.settle();
    trio.crash("b");
    trio.crash("a");
    trio.mend();
    trio.restart("b");
    trio.advance(leaseMs + 2_000);
    expect(trio.committed("b")).toContain("x");
  });

  it("keeps a whole window in flight and then refuses (VSR-33)", () => {
    const trio = new Trio();
    trio.cut("a");
    expect(windowEntries).toBeGreaterThanOrEqual(1_024);
    trio.propose("a", ...range(0, windowEntries));
    expect(trio.effects("a", "accepted")).toHaveLength(windowEntries);
    trio.propose("a", "more");
    expect(trio.effects("a", "refused").map(({ reason }) => reason)).toEqual(["windowFull"]);
  });

  it("fills a gap after WRONG_SEQUENCE, over many pages (VSR-9, S-14)", () => {
    const trio = new Trio();
    let drop = 1;
    trio.lost = ({ to, message }) => to === "b" && message.kind === "prepare" && drop-- > 0;
    for (let i = 0; i < 1_000; i++) trio.propose("a", `e${i}`);
    trio.settle();
    expect(trio.at("b").state.commit).toBeLessThan(999);
    trio.advance(2 * retransmitMs);
    expect(trio.committed("b")).toEqual(range(0, 1_000));
  });

  it("answers a repeated proposal with the place it has (VSR-11)", () => {
    const trio = new Trio();
    trio.cut("a");
    trio.propose("a", "x");
    trio.propose("a", "x");
    expect(trio.effects("a", "accepted").map(({ seq }) => seq)).toEqual([0, 0]);
    expect(trio.at("a").state.entries).toHaveLength(1);
  });

  it("a stalled disk bounds what a replica takes in", () => {
    const trio = new Trio({ windowEntries: 16, batchEntries: 8 });
    trio.held.add("b");
    for (let i = 0; i < 200; i++) {
      trio.propose("a", `e${i}`);
      trio.settle();
    }
    expect(trio.committed("a")).toHaveLength(200);
    expect(trio.at("b").state.marks.length).toBeLessThanOrEqual(4 * 16);
    trio.held.delete("b");
    trio.sync("b");
    trio.advance(5_000);
    expect(trio.committed("b")).toEqual(range(0, 200));
  });

  for (const kind of ["prepare", "prepareResponse", "commit", "newView", "viewChange"] as const) {
    it(`survives the loss of every third ${kind}`, () => {
      const trio = new Trio();
      let count = 0;
      trio.lost = ({ message }) => message.kind === kind && count++ % 3 === 0;
      trio.propose("a", "x");
      trio.advance(1_000);
      trio.crash("a");
      trio.advance(2 * leaseMs + 20_000);
      trio.propose(trio.primary ?? "", "y");
      trio.advance(5_000);
      expect(trio.committed(trio.primary ?? "")).toEqual(expect.arrayContaining(["x", "y"]));
    });
  }
});

describe("view change", () => {
  it("the next backup leads within the lease and two seconds of a crash (VSR-19)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    trio.advance(leaseMs + 2_000);
    expect(trio.primary).toBe("b");
    expect(trio.at("b").view().view).toBe(2);
    expect(trio.committed("b")).toEqual(["x", "noop/2"]);
  });

  it("a passed-over replica leads if no other can, and later (AD-19.26)", () => {
    const trio = new Trio();
    trio.passedOver.add("b");
    trio.propose("a", "x");
    trio.settle();
    trio.crash("a");
    trio.advance(leaseMs + 2_000 + rankDelayMs);
    expect(trio.primary).toBe("c");
    const all = new Trio();
    for (const name of ["a", "b", "c"]) all.passedOver.add(name);
    all.crash("a");
    all.advance(leaseMs + 2_000 + 3 * rankDelayMs);
    expect(all.primary).toBe("b");
  });

  it("the second backup leads when the first is dead too (N = 5)", () => {
    const trio = new Trio({}, ["a", "b", "c", "d", "e"]);
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    trio.crash("b");
    trio.advance(leaseMs + 2_000 + rankDelayMs);
    expect(trio.primary).toBe("c");
  });

  // VSR-1, VSR-15
  it("leader dies at 42 with replicas at 42 and 41: the new view starts at 43", () => {
    const trio = new Trio();
    trio.propose("a", ...range(0, 42));
    trio.settle();
    trio.lost = ({ to, message }) => to === "c" && message.kind === "prepare";
    trio.propose("a", "e42");
    trio.settle();
    trio.crash("a");
    trio.mend();
    trio.advance(leaseMs + 3_000);
    const { startSeq } = trio.at(trio.primary ?? "").state;
    expect(startSeq).toBe(43);
    expect(trio.committed("c")).toEqual([...range(0, 43), "noop/2"]);
  });

  // VSR-8
  it("an isolated leader commits nothing, gets STALE_VIEW after the heal, and follows", () => {
    const trio = new Trio();
    trio.cut("a");
    trio.propose("a", "lost");
    trio.advance(leaseMs + 2_000);
    expect(trio.committed("a")).toEqual([]);
    trio.mend();
    trio.advance(4_000);
    expect(trio.effects("a", "steppedDown")).toHaveLength(1);
    expect(trio.at("a").state.primary).toBe("b");
    expect(trio.committed("a")).toEqual(["noop/2"]);
  });

  // S-15, S-17
  it("a primary paused for a minute steps down on waking, its writes unknown (VSR-16)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    const tick = trio.step.bind(trio);
    trio.step = (name, input) => (name === "a" ? [] : tick(name, input));
    trio.advance(60_000);
    trio.step = tick;
    trio.propose("a", "late");
    trio.advance(5_000);
    expect(trio.effects("a", "steppedDown")).toHaveLength(1);
    expect(trio.committed("a")).not.toContain("late");
    expect(trio.primary).toBe("b");
  });

  // VSR-14
  it("a returning primary with a long tail loses it to the shorter committed log (S-4)", () => {
    const trio = new Trio();
    trio.cut("a");
    trio.propose("a", ...range(0, 20));
    trio.advance(leaseMs + 2_000);
    trio.propose("b", "kept");
    trio.settle();
    trio.crash("b");
    trio.mend();
    trio.advance(2 * leaseMs + 5_000);
    const primary = trio.primary ?? "";
    expect(trio.committed(primary)).toEqual(expect.arrayContaining(["noop/2", "kept"]));
    expect(trio.committed(primary).filter((id) => id.startsWith("e"))).toEqual([]);
  });

  it("duelling candidates settle on one (VSR-13)", () => {
    const trio = new Trio({ rankDelayMs: 0, viewChangeBackoffMs: 500 });
    trio.crash("a");
    trio.advance(leaseMs + 5_000);
    const leading = ["b", "c"].filter((name) => trio.at(name).state.acting);
    expect(leading).toHaveLength(1);
  });

  it("a replica that does not receive from the primary does not depose it (asymmetric partition)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.lost = ({ from, to }) => from === "a" && to === "c";
    trio.advance(4 * leaseMs);
    expect(trio.primary).toBe("a");
    expect(trio.at("a").view().view).toBe(1);
  });

  it("one replica that still receives from the old primary does not stop a majority (N = 5)", () => {
    const trio = new Trio({}, ["a", "b", "c", "d", "e"]);
    trio.propose("a", "x");
    trio.advance(500);
    trio.lost = ({ from, to }) => (from === "a" && to !== "b") || (to === "a" && from !== "b");
    trio.advance(2 * leaseMs + 5_000);
    expect(["b", "c", "d", "e"].filter((name) => trio.at(name).state.acting)).toHaveLength(1);
  });

  it("a restarted primary needs a new view, and does not wait for its own lease (VSR-30)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    trio.restart("a");
    expect(trio.at("a").view().primary).toBe(false);
    trio.advance(2_000);
    expect(trio.primary).toBe("a");
    expect(trio.at("a").view().view).toBe(4);
  });

  it("grants only what is on disk, and repeats its answer to the same candidate (VSR-12)", () => {
    const trio = new Trio({ leaseMs: 0 });
    trio.held.add("c");
    const ask = { kind: "viewChange", epoch: 1, view: 2, probe: false } as const;
    trio.step("c", { kind: "message", from: nodeId("b"), message: ask });
    expect(trio.network).toEqual([]);
    trio.sync("c");
    expect(trio.network.map(({ message }) => message)).toMatchObject([{ granted: true, view: 2 }]);
    trio.step("c", { kind: "message", from: nodeId("b"), message: ask });
    trio.sync("c");
    expect(trio.network[1]?.message).toMatchObject({ granted: true, view: 2 });
    trio.step("c", { kind: "message", from: nodeId("a"), message: { ...ask, view: 1 } });
    expect(trio.network[2]?.message).toMatchObject({ granted: false, currentView: 2 });
  });

  it("an old newView does not cut what a restarted replica acked since (seed 262)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    const kept: Sent[] = [];
    trio.lost = (sent) => {
      if (sent.to === "c" && sent.message.kind === "newView") kept.push(sent);
      return false;
    };
    trio.advance(leaseMs + 3_000);
    expect(trio.primary).toBe("b");
    trio.propose("b", "y", "z");
    trio.settle();
    const { lastSeq } = trio.at("c").view();
    trio.crash("c");
    trio.restart("c");
    const { message } = kept[0] ?? {};
    if (message === undefined) throw new Error("a new view was announced");
    trio.step("c", { kind: "message", from: nodeId("b"), message });
    expect(trio.at("c").view()).toMatchObject({ lastSeq, status: "normal" });
  });

  it("does not count an ack of an earlier view of its own (VSR-10)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    trio.restart("a");
    trio.advance(2_000);
    expect(trio.at("a").view()).toMatchObject({ primary: true, view: 4 });
    trio.cut("a");
    trio.propose("a", "y");
    const old = { kind: "prepareResponse", epoch: 1, status: "success", view: 1 } as const;
    const message = { ...old, expected: 3, acked: 2, sentAt: 0, round: 0 };
    trio.step("a", { kind: "message", from: nodeId("b"), message });
    expect(trio.committed("a")).not.toContain("y");
    const beyond = { ...message, view: 4, expected: 51, acked: 50 };
    const dropped = trio.step("a", { kind: "message", from: nodeId("b"), message: beyond });
    expect(dropped).toMatchObject([{ kind: "implausible", from: "b" }]);
    expect(trio.committed("a")).not.toContain("y");
    trio.step("a", { kind: "message", from: nodeId("b"), message: { ...message, view: 4 } });
    expect(trio.committed("a")).toContain("y");
  });

  it("drops messages of a replica that does not own the view (VSR-2)", () => {
    const trio = new Trio({ leaseMs: 0 });
    const ask = { kind: "viewChange", epoch: 1, view: 2, probe: false } as const;
    expect(trio.step("b", { kind: "message", from: nodeId("c"), message: ask })).toEqual([]);
  });
});

describe("leases", () => {
  it("last from the send time a quorum echoed, less drift and margin (VSR-20)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    const sentAt = trio.now;
    expect(trio.at("a").view().leaseUntil).toBeCloseTo(sentAt + leaseMs * 0.99 - 100);
    trio.cut("a");
    trio.advance(1_000);
    expect(trio.at("a").view().leaseUntil).toBeCloseTo(sentAt + leaseMs * 0.99 - 100);
  });

  it("are renewed without a new view (VSR-21, S-13)", () => {
    const trio = new Trio({ idleMs: Number.POSITIVE_INFINITY });
    trio.advance(5 * leaseMs);
    expect(trio.at("a").view()).toMatchObject({ view: 1, primary: true });
    expect(trio.at("a").view().leaseUntil).toBeGreaterThan(trio.now);
  });

  it("bind a replica: no higher view until the promise is over", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    const ask = { kind: "viewChange", epoch: 1, view: 3, probe: false } as const;
    trio.step("b", { kind: "message", from: nodeId("c"), message: ask });
    expect(trio.network.at(-1)?.message).toMatchObject({ granted: false, leaseLeftMs: leaseMs });
  });

  it("a restarted replica grants nothing for one lease where reads rely on them (VSR-23)", () => {
    const trio = new Trio({ leaseReads: true });
    trio.propose("a", "x");
    trio.settle();
    trio.crash("b");
    trio.restart("b");
    const ask = { kind: "viewChange", epoch: 1, view: 3, probe: false } as const;
    trio.step("b", { kind: "message", from: nodeId("c"), message: ask });
    expect(trio.network.at(-1)?.message).toMatchObject({ granted: false });
    expect(trio.at("b").step({ kind: "tick" }, millis(trio.now + 9_000))).toEqual([]);
  });
});

describe("strong reads", () => {
  it("require a quorum's confirmation of the view (VSR-24)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "read", token: 1 });
    expect(trio.effects("a", "readReady")).toEqual([]);
    trio.settle();
    expect(trio.effects("a", "readReady")).toEqual([{ kind: "readReady", token: 1, seq: 0 }]);
  });

  it("of an empty new group answer at once", () => {
    const trio = new Trio();
    trio.step("a", { kind: "read", token: 1 });
    trio.settle();
    expect(trio.effects("a", "readReady")).toMatchObject([{ seq: -1 }]);
  });

  it("wait for a commit of the primary's own view", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("a");
    trio.lost = ({ message }) => message.kind === "prepareResponse";
    trio.advance(leaseMs + 2_000);
    trio.step("b", { kind: "read", token: 7 });
    trio.settle();
    expect(trio.effects("b", "readReady")).toEqual([]);
    trio.mend();
    trio.advance(1_000);
    expect(trio.effects("b", "readReady")).toMatchObject([{ token: 7, seq: 1 }]);
  });

  it("fail at a backup, and when the primary steps down", () => {
    const trio = new Trio();
    trio.step("b", { kind: "read", token: 1 });
    expect(trio.effects("b", "readFailed")).toMatchObject([{ token: 1, primary: "a" }]);
    trio.cut("a");
    trio.step("a", { kind: "read", token: 2 });
    trio.advance(leaseMs + 2_000);
    trio.mend();
    trio.advance(2_000);
    expect(trio.effects("a", "readFailed")).toMatchObject([{ token: 2 }]);
    expect(trio.effects("a", "readReady")).toEqual([]);
  });

  it("by lease come in the same step, and stop with the lease (VSR-25)", () => {
    const trio = new Trio({ leaseReads: true });
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "read", token: 1 });
    expect(trio.effects("a", "readReady")).toHaveLength(1);
    trio.cut("a");
    trio.now += leaseMs;
    trio.step("a", { kind: "read", token: 2 });
    expect(trio.effects("a", "readReady")).toHaveLength(1);
  });
});

describe("membership", () => {
  it("is not given up on the report of one member, which may lie (VSR-27)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    const lie = { kind: "newerEpoch", epoch: 2, members: ids("a", "d", "e") } as const;
    for (const replica of ["b", "c"]) {
      for (let word = 0; word < 3; word++) {
        trio.step(replica, { kind: "message", from: nodeId("a"), message: lie });
      }
    }
    expect(trio.at("b").view()).toMatchObject({ epoch: 1, status: "normal" });
    trio.propose("a", "y");
    trio.advance(200);
    expect(trio.committed("b")).toEqual(trio.committed("a"));
    trio.step("c", { kind: "message", from: nodeId("b"), message: lie });
    expect(trio.at("c").view()).toMatchObject({ epoch: 2, status: "retired" });
  });

  it("replaces one member; the newcomer votes only with the log (VSR-27)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "b", "d") });
    trio.settle();
    expect(trio.at("c").view().status).toBe("retired");
    trio.advance(3_000);
    expect(trio.at("d").votes).toBe(true);
    expect(trio.at("d").view()).toMatchObject({ epoch: 2, status: "normal" });
    const primary = trio.primary ?? "";
    trio.propose(primary, "y");
    trio.advance(200);
    expect(trio.committed("d")).toEqual(trio.committed(primary));
  });

  it("nothing follows a reconfiguration in its epoch", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "b", "d") });
    trio.propose("a", "late");
    expect(trio.effects("a", "refused")).toMatchObject([{ reason: "reconfiguring" }]);
  });

  it("refuses more than one step, double names, and voters that would not suffice", () => {
    const trio = new Trio();
    const reasons = (...names: string[]) => {
      trio.step("a", { kind: "reconfigure", eventId: names.join(), members: ids(...names) });
      return trio.effects("a", "refused").at(-1)?.reason;
    };
    expect(reasons("a", "b", "d")).toBe("notReady");
    trio.propose("a", "x");
    trio.settle();
    expect(reasons("a", "d", "e")).toBe("badMembers");
    expect(reasons("a", "b", "b")).toBe("badMembers");
    expect(reasons()).toBe("badMembers");
  });

  it("counts no voter that has been silent for a lease, however complete its log was", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.crash("c");
    trio.advance(15_000);
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "c", "d") });
    expect(trio.effects("a", "refused")).toMatchObject([{ reason: "notReady" }]);
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "b", "d") });
    expect(trio.effects("a", "accepted").at(-1)).toMatchObject({ eventId: "r" });
  });

  it("continues when the new epoch's message is lost and the replaced replica is dead", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.crash("c");
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "b", "d") });
    trio.lost = ({ message }) => message.kind === "commit" && message.commit >= 1;
    trio.settle();
    expect(trio.at("b").view().epoch).toBe(1);
    trio.mend();
    trio.advance(5_000);
    expect(trio.primary).not.toBeNull();
    expect(trio.at("b").view().epoch).toBe(2);
  });

  it("a lost disk comes back under a new name (VSR-30)", () => {
    const trio = new Trio();
    trio.propose("a", ...range(0, 10));
    trio.advance(200);
    trio.forget("c");
    trio.step("a", { kind: "reconfigure", eventId: "r", members: ids("a", "b", "c2") });
    trio.advance(5_000);
    expect(trio.at("c2").votes).toBe(true);
    expect(trio.committed("c2").slice(0, 10)).toEqual(range(0, 10));
  });

  // VSR-26
  it("other nodes coming and going change nothing for a group that was not reconfigured", () => {
    const trio = new Trio();
    const message = {
      kind: "prepare",
      epoch: 2,
      view: 1,
      entries: [],
      commit: 5,
      sentAt: 0,
    } as const;
    trio.step("b", { kind: "message", from: nodeId("z"), message });
    trio.lost = ({ to }) => to === "z";
    trio.propose("a", "x");
    trio.advance(1_000);
    expect(trio.at("b").view()).toMatchObject({ epoch: 1, view: 1, commit: 0 });
  });
});

describe("compaction and snapshots", () => {
  it("a replica behind the compacted log gets the snapshot and continues (VSR-31, CKPT-10)", () => {
    const trio = new Trio({ tailEntries: 4 });
    trio.cut("c");
    for (let i = 0; i < 50; i++) trio.propose("a", `e${i}`);
    trio.settle();
    trio.step("a", { kind: "compact", snapshot: { seq: 49, bytes: new Uint8Array([7]) } });
    expect(trio.at("a").state.firstSeq).toBe(46);
    trio.mend();
    trio.propose("a", "after");
    trio.advance(3_000);
    expect(trio.effects("c", "restored")).toMatchObject([{ snapshot: { seq: 49 } }]);
    expect(trio.committed("c")).toEqual(["after"]);
  });

  it("a candidate that adopts a compacted log keeps its snapshot over a restart", () => {
    const trio = new Trio({ tailEntries: 2 });
    trio.cut("b");
    for (let i = 0; i < 20; i++) trio.propose("a", `e${i}`);
    trio.advance(200);
    for (const name of ["a", "c"]) {
      trio.step(name, { kind: "compact", snapshot: { seq: 19, bytes: new Uint8Array([9]) } });
    }
    trio.crash("a");
    trio.mend();
    trio.advance(leaseMs + 3_000);
    expect(trio.primary).toBe("b");
    trio.crash("b");
    trio.restart("b");
    expect(trio.effects("b", "restored")).toMatchObject([{ snapshot: { seq: 19 } }]);
    expect(trio.at("b").state.firstSeq).toBe(20);
  });

  it("stops for good when two values were committed at one place (LEDG-6)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    const entry = trio.at("a").state.entries[0];
    if (entry === undefined) throw new Error("an entry was committed");
    const other = { ...entry, eventId: "other" };
    const head = { kind: "prepare", epoch: 1, view: 1, commit: 0, sentAt: 0 } as const;
    const message = { ...head, entries: [other] };
    trio.step("b", { kind: "message", from: nodeId("a"), message });
    expect(trio.effects("b", "broken")).toHaveLength(1);
    expect(trio.propose("b", "y")).toEqual([]);
  });
});

describe("a group whose first primary never sent anything (VSR-26)", () => {
  it("elects another after two heartbeats, since no lease was promised", () => {
    const trio = new Trio({ leaseMs: 600_000 });
    trio.crash("a");
    trio.advance(2 * VSR_DEFAULTS.renewMs + 3 * rankDelayMs);
    expect(trio.primary).toBe("b");
  });
});

describe("a primary that gives up (VSR-16)", () => {
  it("is followed at once by a backup that has its log, though leases run", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("b");
    trio.propose("b", "y");
    trio.settle();
    expect(trio.committed("b")).toEqual(["x", "noop/2", "y"]);
  });

  it("is succeeded by a passed-over replica only when no other answers (AD-19.26)", () => {
    const trio = new Trio();
    trio.passedOver.add("b");
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("c");
    const last = new Trio();
    for (const name of ["b", "c"]) last.passedOver.add(name);
    last.propose("a", "x");
    last.settle();
    last.step("a", { kind: "giveUp" });
    last.settle();
    expect(last.primary).toBe("b");
  });

  it("first commits what is in flight, and takes nothing new meanwhile", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.propose("a", "y");
    trio.step("a", { kind: "giveUp" });
    trio.propose("a", "z");
    expect(trio.effects("a", "refused")).toMatchObject([{ eventId: "z", reason: "notPrimary" }]);
    expect(trio.at("a").state.acting).toBe(true);
    trio.settle();
    expect(trio.committed("a").slice(0, 2)).toEqual(["x", "y"]);
    expect(trio.primary).toBe("b");
  });

  it("goes though something in flight does not commit, and nothing acked is lost", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.lost = ({ message }) => message.kind === "prepareResponse";
    trio.propose("a", "y");
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("a");
    trio.advance(600);
    trio.mend();
    trio.advance(600);
    expect(trio.primary).toBe("b");
    expect(trio.committed("b").slice(0, 2)).toEqual(["x", "y"]);
  });

  it("names no silent successor, and keeps leading when all are silent", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.crash("b");
    trio.advance(15_000);
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("c");
    const empty = new Trio();
    empty.advance(5_000);
    empty.step("a", { kind: "giveUp" });
    empty.settle();
    expect(empty.primary).toBe("b");
    const alone = new Trio();
    alone.cut("a");
    alone.step("a", { kind: "giveUp" });
    alone.advance(2 * retransmitMs);
    expect(alone.primary).toBe("a");
  });

  it("probes its backups before resigning when it was idle", () => {
    const trio = new Trio({ leaseMs: 600_000 });
    expect(trio.at("a").state.peers.size).toBe(0);
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("b");
  });

  it("repeats its resignation until another leads, and never runs itself", () => {
    const trio = new Trio({ leaseMs: 600_000 });
    trio.propose("a", "x");
    trio.settle();
    trio.lost = ({ message }) => message.kind === "resign";
    trio.step("a", { kind: "giveUp" });
    trio.advance(10_000);
    expect(trio.primary).toBeNull();
    expect(trio.at("a").state.knownView).toBe(1);
    trio.mend();
    trio.advance(retransmitMs);
    expect(trio.primary).toBe("b");
    trio.advance(5_000);
    expect(trio.at("a").nextDeadline()).toBeGreaterThan(trio.now + 60_000);
  });

  it("is followed by the next in line when its successor goes as well", () => {
    const trio = new Trio({ leaseMs: 600_000 });
    trio.propose("a", "x");
    trio.settle();
    trio.step("b", { kind: "giveUp" });
    trio.step("a", { kind: "giveUp" });
    trio.advance(3 * rankDelayMs);
    expect(trio.primary).toBe("c");
  });

  it("releases no promise to another primary", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.settle();
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    const from = nodeId("a");
    for (const view of [1, 2]) {
      const message = { kind: "resign", epoch: 1, view, successor: nodeId("c") } as const;
      trio.step("c", { kind: "message", from, message });
    }
    expect(trio.at("c").state.primary).toBe("b");
    expect(trio.at("c").state.candidacy).toBeNull();
  });
});
