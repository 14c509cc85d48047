import fc from "fast-check";
import { expect, it } from "vitest";
import { Deadlines } from "./deadlines.ts";

it("deadlines come due as in a sorted list, whatever was set, moved and removed", () => {
  const key = fc.nat(12);
  const move = fc.oneof(
    fc.record({ kind: fc.constant("set" as const), key, at: fc.nat(50) }),
    fc.record({ kind: fc.constant("delete" as const), key }),
    fc.record({ kind: fc.constant("take" as const), now: fc.nat(50) }),
  );
  fc.assert(
    fc.property(fc.array(move, { maxLength: 80 }), (moves) => {
      const deadlines = new Deadlines<number>();
      let model: { key: number; at: number }[] = [];
      for (const one of moves) {
        if (one.kind === "take") {
          const due = model.filter(({ at }) => at <= one.now).sort((a, b) => a.at - b.at);
          expect(deadlines.takeDue(one.now)).toEqual(due.map((entry) => entry.key));
          model = model.filter(({ at }) => at > one.now);
        } else {
          model = model.filter((entry) => entry.key !== one.key);
          if (one.kind === "set") model.push({ key: one.key, at: one.at });
          if (one.kind === "set") deadlines.set(one.key, one.at);
          else deadlines.delete(one.key);
        }
        expect(deadlines.size).toBe(model.length);
        const earliest = model.length === 0 ? null : Math.min(...model.map(({ at }) => at));
        expect(deadlines.next()).toBe(earliest);
      }
    }),
    { numRuns: 300 },
  );
});
