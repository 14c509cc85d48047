import fc from "fast-check";
import { expect, it } from "vitest";
import { RowCycle } from "./row-cycle.ts";

const rowsOf = fc.integer({ min: 1, max: 60 });
const coresOf = fc.integer({ min: 1, max: 16 });

function taken(cycle: RowCycle, count: number): number[] {
  return Array.from({ length: count }, () => cycle.rowAt(cycle.next()));
}

const cyclesOf = (rows: number, count: number, part?: number): RowCycle[] =>
  Array.from({ length: count }, (_, index) => {
    const place = { load: { kind: "once", durationMsMax: 1 }, index: part ?? 0, count: 3 } as const;
    const rest = { weights: [], firstUser: 0, users: 1, firstIteration: 0 };
    return new RowCycle(rows, {
      index,
      count,
      part: part === undefined ? undefined : { ...place, ...rest },
    });
  });

it("one core takes row after row and begins again at the end", () => {
  const [only] = cyclesOf(4, 1);
  expect(taken(only as RowCycle, 10)).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
});

it("uses every row equally often over all cores", () => {
  fc.assert(
    fc.property(rowsOf, coresOf, fc.option(fc.nat(2)), (rows, cores, part) => {
      const used = cyclesOf(rows, cores, part ?? undefined).flatMap((one) => taken(one, rows));
      const counts = Array.from({ length: rows }, (_, row) => used.filter((r) => r === row).length);
      expect(counts).toEqual(counts.map(() => cores));
    }),
  );
});

it("brings every core to all rows, however few there are", () => {
  fc.assert(
    fc.property(rowsOf, coresOf, (rows, cores) => {
      for (const one of cyclesOf(rows, cores))
        expect(new Set(taken(one, rows * cores)).size).toBe(rows);
    }),
  );
});

it("takes the rows in the sequence of one core while the cores keep pace", () => {
  const cycles = cyclesOf(5, 2);
  const rounds = Array.from({ length: 5 }, () => cycles.map((one) => one.rowAt(one.next()))).flat();
  expect(rounds).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
});
