/** Failures a group survives, and which entries survive a primary. */

import { describe, expect, it } from "vitest";
import { VSR_DEFAULTS } from "./config.ts";
import { Trio } from "./testing/trio.ts";

const { leaseMs, rankDelayMs } = VSR_DEFAULTS;
const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `e${from + index}`);

describe("a group", () => {
  it.each([
    [["a", "b", "c"], ["a"]],
    [["a", "b", "c"], ["c"]],
    [
      ["a", "b", "c", "d", "e"],
      ["a", "b"],
    ],
    [
      ["a", "b", "c", "d", "e"],
      ["a", "e"],
    ],
  ])("of %j the loss of %j loses nothing that was committed (S-19)", (names, gone) => {
    const trio = new Trio({}, names);
    trio.propose("a", ...range(0, 20));
    trio.settle();
    expect(trio.committed("a")).toEqual(range(0, 20));
    for (const name of gone) trio.crash(name);
    trio.advance(2 * (leaseMs + 2_000 + rankDelayMs));
    const primary = trio.primary ?? "";
    expect(gone).not.toContain(primary);
    trio.propose(primary, "after");
    trio.advance(1_000);
    for (const name of names.filter((one) => !gone.includes(one))) {
      const events = trio.committed(name).filter((id) => !id.startsWith("noop/"));
      expect([name, ...events]).toEqual([name, ...range(0, 20), "after"]);
    }
  });

  it("stops without a majority and invents nothing (S-19)", () => {
    const trio = new Trio();
    trio.propose("a", "x");
    trio.advance(200);
    trio.crash("b");
    trio.crash("c");
    trio.propose("a", "y");
    trio.advance(10 * leaseMs);
    expect(trio.committed("a")).toEqual(["x"]);
  });

  it("keeps its primary while idle, and a new view brings its log along (S-20)", () => {
    const trio = new Trio();
    trio.propose("a", ...range(0, 5));
    trio.advance(500);
    const kinds = new Set<string>();
    trio.lost = ({ message }) => {
      kinds.add(message.kind);
      return false;
    };
    trio.advance(5 * leaseMs);
    // Nothing was proposed: commits go out, their answers come back, and no replica runs for a view.
    expect(trio.primary).toBe("a");
    expect([...kinds]).toContain("commit");
    expect([...kinds].some((kind) => kind === "prepare" || kind.includes("iew"))).toBe(false);
    // A replica that missed entries has them when the next view begins, without requesting each.
    trio.lost = ({ to }) => to === "c";
    trio.propose("a", "missed");
    trio.settle();
    trio.crash("a");
    trio.lost = () => false;
    trio.advance(2 * (leaseMs + 2_000));
    expect(trio.primary).toBe("b");
    expect(trio.committed("c").filter((id) => !id.startsWith("noop/"))).toEqual([
      ...range(0, 5),
      "missed",
    ]);
  });

  it("what is new commits only with all that was taken over before it (VSR-18)", () => {
    const trio = new Trio();
    trio.propose("a", ...range(0, 10));
    trio.settle();
    // The entry is on the others' disks, but no replica learns that it committed.
    trio.lost = ({ from }) => from !== "a";
    trio.propose("a", "open");
    trio.settle();
    trio.crash("a");
    trio.mend();
    while (trio.primary === null) trio.advance(10);
    const primary = trio.primary;
    const other = primary === "b" ? "c" : "b";
    trio.held.add(other);
    trio.propose(primary, "new");
    trio.settle();
    // The new one is in the log, and its quorum has not written it down.
    expect(trio.committed(primary)).not.toContain("new");
    trio.held.delete(other);
    trio.sync(other);
    trio.settle();
    trio.advance(200);
    for (const name of [primary, other]) {
      const events = trio.committed(name).filter((id) => !id.startsWith("noop/"));
      expect(events).toEqual([...range(0, 10), "open", "new"]);
    }
  });
});
