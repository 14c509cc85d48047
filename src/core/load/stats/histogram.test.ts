import fc from "fast-check";
import { build } from "hdr-histogram-js";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import {
  cellLow,
  cellMiddle,
  cellOf,
  cellWidth,
  Histogram,
  PAGES_MAX,
  VALUE_MAX,
} from "./histogram.ts";
import { CELLS_PER_PAGE } from "./histogram-page.ts";

const value = fc.oneof(
  fc.integer({ min: 0, max: 5_000 }),
  fc.integer({ min: 0, max: 2 ** 31 }),
  fc.double({ min: 0, max: VALUE_MAX, noNaN: true }),
);
const values = fc.array(value, { maxLength: 200 });
const FRACTIONS = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

function of(list: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const one of list) histogram.record(one);
  return histogram;
}

function cells(histogram: Histogram): [number, number][] {
  const list: [number, number][] = [];
  histogram.forEachCell((cell, count) => list.push([cell, count]));
  return list;
}

describe("cells", () => {
  it("contain their values, ascend, and are at most 0.1 % wide above 1024", () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const cell = cellOf(a);
        expect(cellLow(cell)).toBeLessThanOrEqual(a);
        expect(cellLow(cell) + cellWidth(cell)).toBeGreaterThan(a);
        expect(cellWidth(cell) / Math.max(1_024, a)).toBeLessThanOrEqual(1 / 1_024);
        expect(Math.sign(cellOf(b) - cell) * Math.sign(b - a)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("meet without gaps over the whole range", () => {
    const all = Array.from({ length: PAGES_MAX * CELLS_PER_PAGE - 1 }, (_, cell) => cell);
    expect(all.filter((cell) => cellLow(cell) + cellWidth(cell) !== cellLow(cell + 1))).toEqual([]);
    expect(all.filter((cell) => cellOf(cellLow(cell)) !== cell)).toEqual([]);
    expect(cellOf(VALUE_MAX)).toBe(PAGES_MAX * CELLS_PER_PAGE - 1);
    expect(cellOf(Number.MAX_SAFE_INTEGER)).toBe(cellOf(VALUE_MAX));
    expect([cellOf(-1), cellOf(-1e12), cellOf(0), cellOf(0.9)]).toEqual([0, 0, 0, 0]);
  });
});

describe("a histogram", () => {
  it("counts beyond 16 and 32 bits in a cell, when added, merged and raised", () => {
    const times = fc.integer({ min: 0, max: 2 ** 33 });
    const cell = fc.nat(3);
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, times), { maxLength: 8 }), (added) => {
        const [plain, part, whole] = [new Histogram(), new Histogram(), new Histogram()];
        const counts = [0, 0, 0, 0];
        for (const [at, more] of added) {
          plain.record(at, more);
          counts[at] = (counts[at] ?? 0) + more;
          part.raiseCells(Uint16Array.of(at), Float64Array.of(counts[at]), whole);
        }
        const merged = new Histogram();
        merged.merge(plain);
        for (const one of [plain, part, whole, merged])
          expect(counts.map((_, at) => one.countOfCell(at))).toEqual(counts);
        expect(whole.count).toBe(plain.count);
      }),
    );
  });

  it("equals the rest alone after a part is subtracted", () => {
    const value = fc.oneof(fc.nat(3_000), fc.nat(2 ** 31));
    const times = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 2 ** 18 }));
    const values = fc.array(fc.tuple(value, times), { maxLength: 20 });
    fc.assert(
      fc.property(values, values, (some, others) => {
        const [whole, part, alone] = [new Histogram(), new Histogram(), new Histogram()];
        for (const [one, count] of some) for (const into of [whole, part]) into.record(one, count);
        for (const [one, count] of others)
          for (const into of [whole, alone]) into.record(one, count);
        const rest = whole.without(part);
        const cells = (of: Histogram): number[][] => {
          const held: number[][] = [];
          of.forEachCell((cell, count) => held.push([cell, count]));
          return held;
        };
        expect(cells(rest)).toEqual(cells(alone));
        expect([rest.count, rest.sum]).toEqual([alone.count, alone.sum]);
        expect(cellOf(rest.min)).toBe(cellOf(alone.min));
        expect(cellOf(rest.max)).toBe(cellOf(alone.max));
        expect(rest.quantiles([0.5, 0.9, 0.999]).map(cellOf)).toEqual(
          alone.quantiles([0.5, 0.9, 0.999]).map(cellOf),
        );
      }),
    );
  });

  it("agrees with hdr-histogram-js on percentiles, count and extremes", () => {
    const random = new Random("oracle");
    const shapes: Record<string, () => number> = {
      uniform: () => 1 + random.below(1_000_000),
      exponential: () => Math.floor(1 - 5_000 * Math.log(1 - random.float())),
      "heavy tail": () => Math.floor(200 / (1 - random.float()) ** 0.8),
      constant: () => 777_777,
    };
    for (const [shape, draw] of Object.entries(shapes)) {
      const ours = new Histogram();
      const oracle = build({
        lowestDiscernibleValue: 1,
        highestTrackableValue: 3_600_000_000,
        numberOfSignificantValueDigits: 3,
      });
      for (let i = 0; i < 50_000; i++) {
        const drawn = Math.min(draw(), 3_600_000_000);
        ours.record(drawn);
        oracle.recordValue(drawn);
      }
      expect(ours.count, shape).toBe(oracle.totalCount);
      expect(ours.max, shape).toBeLessThanOrEqual(oracle.maxValue);
      for (const fraction of FRACTIONS) {
        const theirs = oracle.getValueAtPercentile(fraction * 100);
        expect(Math.abs(ours.quantile(fraction) / theirs - 1), `${shape} ${fraction}`).toBeLessThan(
          0.0011,
        );
      }
      expect(Math.abs(ours.mean / oracle.mean - 1), shape).toBeLessThan(0.001);
    }
  });

  it("merges like hdr-histogram-js", () => {
    const random = new Random("merge");
    const [ours, theirs] = [new Histogram(), build()];
    for (let part = 0; part < 5; part++) {
      const [own, other] = [new Histogram(), build()];
      for (let i = 0; i < 5_000; i++) {
        const drawn = 1 + random.below(10 ** (part + 2));
        own.record(drawn);
        other.recordValue(drawn);
      }
      ours.merge(own);
      theirs.add(other);
    }
    expect(ours.count).toBe(theirs.totalCount);
    for (const fraction of FRACTIONS) {
      const expected = theirs.getValueAtPercentile(fraction * 100);
      expect(Math.abs(ours.quantile(fraction) - expected)).toBeLessThanOrEqual(
        Math.max(1, expected * 0.0011),
      );
    }
  });

  it("reports quantiles of the raw values to half a cell", () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (list, fraction) => {
          const sorted = list.toSorted((a, b) => a - b);
          const rank = Math.max(1, Math.ceil(fraction * list.length - 1e-9));
          const exact = sorted[rank - 1] ?? 0;
          const found = of(list).quantile(fraction);
          const cell = cellOf(exact);
          expect(Math.abs(found - cellMiddle(cell))).toBeLessThanOrEqual(cellWidth(cell));
          expect(found).toBeGreaterThanOrEqual(sorted[0] ?? 0);
          expect(found).toBeLessThanOrEqual(sorted.at(-1) ?? 0);
        },
      ),
    );
  });

  it("merges exactly: two parts are the whole, in either order", () => {
    fc.assert(
      fc.property(values, values, (left, right) => {
        const [ab, ba] = [of(left), of(right)];
        ab.merge(of(right));
        ba.merge(of(left));
        const whole = of([...left, ...right]);
        for (const merged of [ab, ba]) {
          expect(cells(merged)).toEqual(cells(whole));
          expect([merged.count, merged.min, merged.max]).toEqual([
            whole.count,
            whole.min,
            whole.max,
          ]);
          expect(Math.abs(merged.sum - whole.sum)).toBeLessThanOrEqual(1e-9 * (1 + whole.sum));
        }
      }),
    );
  });

  it("counts values at or below a limit, and resets when cleared", () => {
    const histogram = of([1, 2, 3, 1_000, 5_000_000]);
    expect([0, 2, 999, 1_000, 1e9].map((at) => histogram.countAtOrBelow(at))).toEqual([
      0, 2, 3, 4, 5,
    ]);
    histogram.clear();
    expect([
      histogram.count,
      histogram.min,
      histogram.max,
      histogram.mean,
      histogram.quantile(0.5),
    ]).toEqual([0, 0, 0, 0, 0]);
  });
});
