import { describe, expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { VSR_DEFAULTS } from "./config.ts";
import type { Sent } from "./testing/trio.ts";
import { Trio } from "./testing/trio.ts";

describe("a group with nothing to do (VSR-21)", () => {
  const { idleMs, leaseMs } = VSR_DEFAULTS;

  function asleep(): Trio {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(idleMs + leaseMs + 5_000);
    for (const name of ["a", "b", "c"]) {
      expect(trio.at(name).state.asleep).toBe(true);
      expect(trio.at(name).nextDeadline()).toBeNull();
    }
    return trio;
  }

  it("sleeps without a timer, and the first proposal wakes it in the same view", () => {
    const trio = asleep();
    trio.propose("a", "y");
    trio.settle();
    expect(trio.committed("a")).toEqual(["x", "y"]);
    for (const name of ["a", "b", "c"]) {
      expect(trio.at(name).state).toMatchObject({ asleep: false, knownView: 1 });
    }
  });

  it("stays awake with `staysAwake` until its primary may rest", () => {
    const trio = new Trio({ staysAwake: true });
    trio.propose("a", "x");
    trio.advance(5 * idleMs);
    for (const name of ["a", "b", "c"]) expect(trio.at(name).state.asleep).toBe(false);
    trio.step("a", { kind: "mayRest" });
    trio.advance(leaseMs + 5_000);
    for (const name of ["a", "b", "c"]) expect(trio.at(name).nextDeadline()).toBeNull();
    trio.propose("a", "y");
    trio.settle();
    expect(trio.committed("a")).toEqual(["x", "y"]);
  });

  it("is woken by a backup, which keeps a live primary in place", () => {
    const trio = asleep();
    trio.step("b", { kind: "wake" });
    trio.advance(5_000);
    expect(trio.at("a").state).toMatchObject({ acting: true, asleep: false, knownView: 1 });
  });

  it("has another primary soon after the first request, when its own died asleep", () => {
    const trio = asleep();
    trio.crash("a");
    trio.advance(60_000);
    expect(trio.primary).toBeNull();
    trio.step("c", { kind: "wake" });
    trio.advance(4_000);
    expect(trio.primary).toBe("c");
  });

  it("is not bound by a lease to a primary that went just after it fell asleep (VSR-20)", () => {
    const trio = new Trio({ leaseMs: 600_000 });
    trio.propose("a", "x");
    while (!trio.at("a").state.asleep) trio.advance(100);
    expect(trio.at("a").isAwaited).toBe(false);
    expect(trio.at("a").view().leaseUntil).toBe(Number.NEGATIVE_INFINITY);
    trio.crash("a");
    trio.step("c", { kind: "wake" });
    trio.advance(4_000);
    expect(trio.primary).toBe("c");
  });

  it("is awaited for a lease by a backup that missed its last heartbeat", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.lost = ({ to, message }) => to === "c" && message.kind === "commit" && message.sleeps;
    while (!trio.at("a").state.asleep) trio.advance(100);
    expect(trio.at("a").isAwaited).toBe(true);
    trio.step("a", { kind: "giveUp" });
    trio.settle();
    expect(trio.primary).toBe("b");
  });

  it("does not treat an old last heartbeat as the end of the lease (VSR-20)", () => {
    const trio = new Trio();
    const old: Sent[] = [];
    trio.propose("a", "x");
    trio.lost = (sent) => {
      if (sent.message.kind === "commit" && sent.message.sleeps) old.push(sent);
      return false;
    };
    while (!trio.at("a").state.asleep) trio.advance(100);
    trio.step("a", { kind: "wake" });
    trio.advance(200);
    for (const { from, to, message } of old) {
      trio.step(to, { kind: "message", from: nodeId(from), message });
    }
    expect(trio.at("a").view().leaseUntil).toBeGreaterThan(trio.now);
    for (const name of ["b", "c"]) {
      expect(trio.at(name).state.promisedUntil).toBeGreaterThan(trio.now);
    }
  });

  it("sleeps on over a restart of all, and the first request finds it a primary", () => {
    const trio = asleep();
    for (const name of ["a", "b", "c"]) trio.crash(name);
    for (const name of ["a", "b", "c"]) trio.restart(name);
    trio.advance(60_000);
    expect(trio.primary).toBeNull();
    trio.step("b", { kind: "wake" });
    trio.advance(4_000);
    expect(trio.primary).toBe("b");
    expect(trio.committed("b")).toContain("x");
  });

  it("answers no strong read from memory when it wakes: another may lead (VSR-24)", () => {
    const trio = asleep();
    trio.cut("a");
    trio.step("b", { kind: "wake" });
    trio.advance(4_000);
    trio.propose("b", "y");
    trio.settle();
    expect(trio.committed("b")).toContain("y");
    trio.step("a", { kind: "read", token: 1 });
    trio.advance(2_000);
    expect(trio.effects("a", "readReady")).toEqual([]);
  });

  it("stays awake while a replica lacks something, but not for ever", () => {
    const trio = new Trio();
    trio.cut("c");
    trio.propose("a", "x");
    trio.advance(2 * idleMs);
    expect(trio.at("a").state.asleep).toBe(false);
    trio.crash("c");
    trio.advance(3 * idleMs);
    expect(trio.at("a").state.asleep).toBe(true);
    trio.mend();
    trio.restart("c");
    trio.step("c", { kind: "wake" });
    trio.advance(5_000);
    expect(trio.committed("c")).toContain("x");
  });
});
