import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { beginCells, cellsAt, reserveCells } from "./cell-buffer.ts";
import { CELLS_MAX } from "./histogram.ts";
import { Tally, type TallyChanges, type TallyShape } from "./tally.ts";
import { ToldTallies } from "./told-tallies.ts";
import { NO_CHANGES } from "./tracked-histogram.ts";

const SHAPE: TallyShape = { counts: 3, histograms: 2, keysMax: 4, keyMax: 600 };
const TALLIES = 3;
/** Absolute, and mostly increasing; some take more than 16 bits, and some are repeated. */
const count = fc.oneof(fc.nat(5), fc.nat(2 ** 17), fc.nat(2 ** 40));
const cell = fc.oneof(
  fc.nat(3),
  fc.constantFrom(1_023, 1_024, 2_047, 2_048),
  fc.nat(CELLS_MAX - 1),
);
const histogram = fc.record({
  sum: fc.nat(2 ** 30),
  cells: fc.uniqueArray(fc.tuple(cell, count), { selector: ([at]) => at, maxLength: 6 }),
});
const told = fc.record({
  of: fc.nat(TALLIES - 1),
  counts: fc.array(count, { minLength: SHAPE.counts, maxLength: SHAPE.counts }),
  keyed: fc.uniqueArray(fc.tuple(fc.nat(4), count), { selector: ([key]) => key, maxLength: 4 }),
  histograms: fc.array(histogram, { minLength: 2, maxLength: 2 }),
});
type Told = typeof told extends fc.Arbitrary<infer One> ? One : never;

/** Changes as in a frame that was just read. */
function changesOf({ counts, histograms, keyed }: Told): TallyChanges {
  beginCells();
  return {
    ...{ counts, keyed },
    histograms: histograms.map(({ cells, sum }) => {
      if (cells.length === 0) return NO_CHANGES;
      const stretch = reserveCells(cells.length);
      const buffer = cellsAt(stretch);
      for (const [at, [number, times]] of cells.toSorted(([a], [b]) => a - b).entries()) {
        buffer.cells[stretch.from + at] = number;
        buffer.counts[stretch.from + at] = times;
      }
      return { sum, min: 1, max: 2, stretch };
    }),
  };
}

function seen({ counts, histograms, keyed }: Tally): unknown {
  return {
    counts: [...counts],
    keyed: [...keyed].filter(([, times]) => times > 0),
    histograms: histograms.map(({ histogram: one }) => {
      const cells: number[][] = [];
      one.forEachCell((number, times) => cells.push([number, times]));
      return { all: one.count, max: one.max, min: one.min, sum: one.sum, cells };
    }),
  };
}

describe("the received tallies of a sender", () => {
  it("raise the whole like one tally for each would, for any changes", () => {
    fc.assert(
      fc.property(fc.array(told, { maxLength: 12 }), (frames) => {
        const side = new ToldTallies(SHAPE);
        const [parts, wholes, expected] = [0, 1, 2].map(() =>
          Array.from({ length: TALLIES }, () => new Tally(SHAPE)),
        ) as [Tally[], Tally[], Tally[]];
        for (let at = 0; at < TALLIES; at++) side.push();
        for (const [at, one] of frames.entries()) {
          const { of } = one;
          side.raise(of, changesOf(one), wholes[of] as Tally, at + 1);
          (parts[of] as Tally).raise(changesOf(one), expected[of] as Tally, at + 1);
          expect([...side.countsOf(of)]).toEqual([...(parts[of] as Tally).counts]);
        }
        expect(wholes.map(seen)).toEqual(expected.map(seen));
        expect(wholes.map(({ changedIn }) => changedIn)).toEqual(
          expected.map(({ changedIn }) => changedIn),
        );
      }),
    );
  });
});
