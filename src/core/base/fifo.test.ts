import { describe, expect, it } from "vitest";
import { Fifo } from "./fifo.ts";
import { Random } from "./random.ts";

describe("first in, first out", () => {
  it("gives what was put in, in order, whatever was taken before", () => {
    const random = new Random(7);
    const fifo = new Fifo<number>();
    const model: number[] = [];
    for (let next = 0; next < 5_000; next++) {
      // More comes than goes at first, and then the other way round.
      const puts = random.chance(next < 2_500 ? 0.7 : 0.3);
      if (puts) {
        fifo.push(next);
        model.push(next);
      } else {
        expect(fifo.take()).toBe(model.shift());
      }
      expect(fifo.size).toBe(model.length);
    }
    fifo.push(-1);
    expect(fifo.takeAll()).toEqual([...model, -1]);
    expect(fifo.size).toBe(0);
    expect(fifo.take()).toBeUndefined();
  });
});
