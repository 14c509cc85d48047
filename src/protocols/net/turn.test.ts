/** The phases of a turn: their order, when there are none, and the effect of a failure in one of them. */

import { describe, expect, it } from "vitest";
import { DeferredList, Turn } from "./turn.ts";

function loopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Delivers this many responses in one turn, with no consequences. */
async function turnWith(turn: Turn, answers: number): Promise<void> {
  for (let i = 0; i < answers; i++) turn.answered();
  await loopTurn();
}

describe("a turn", () => {
  it("finishes what was read, continues with promises, and then writes", async () => {
    const turn = new Turn();
    const seen: string[] = [];
    for (const name of ["a", "b", "c"]) {
      turn.answered();
      turn.finishLater({
        resume: () => {
          seen.push(`finish ${name}`);
          void Promise.resolve().then(() => {
            seen.push(`go on ${name}`);
            turn.writeLater({ resume: () => seen.push(`write ${name}`) });
          });
        },
      });
      seen.push(`read ${name}`);
    }
    expect(turn.reading).toBe(true);
    await loopTurn();
    const parts = ["read", "finish", "go on", "write"];
    expect(seen).toEqual(parts.flatMap((part) => ["a", "b", "c"].map((name) => `${part} ${name}`)));
    expect(turn.reading).toBe(false);
  });

  it("has no phases for a while where few responses arrive at once", async () => {
    const turn = new Turn();
    for (let small = 0; small < 4; small++) {
      expect(turn.reading).toBe(false);
      turn.answered();
      expect(turn.reading).toBe(true);
      await turnWith(turn, 2);
    }
    for (let answer = 0; answer < 64; answer++) {
      turn.answered();
      expect(turn.reading).toBe(false);
    }
    turn.answered();
    expect(turn.reading).toBe(true);
    await loopTurn();
  });

  it("has phases repeatedly where many arrive, whatever comes between", async () => {
    const turn = new Turn();
    for (let i = 0; i < 40; i++) {
      turn.answered();
      expect(turn.reading).toBe(true);
      await turnWith(turn, i % 4 === 0 ? 3 : 0);
    }
  });
});

describe("a deferred item", () => {
  it("does not depend on the items before it", async () => {
    const list = new DeferredList();
    const seen: string[] = [];
    list.add({ resume: () => seen.push("first") });
    list.add({
      resume: () => {
        throw new Error("broken");
      },
    });
    list.add({ resume: () => seen.push("last") });
    expect(() => list.run()).toThrow("broken");
    await loopTurn();
    expect(seen).toEqual(["first", "last"]);
  });

  it("is resumed once, however often the list is used", () => {
    const list = new DeferredList();
    const resumed = [0, 0, 0];
    for (let round = 1; round <= 3; round++) {
      for (let at = 0; at < round; at++) list.add({ resume: () => resumed.splice(at, 1, round) });
      list.run();
      list.run();
    }
    expect(resumed).toEqual([3, 3, 3]);
  });
});
