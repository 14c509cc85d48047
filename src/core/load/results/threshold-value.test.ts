import fc from "fast-check";
import { expect, it } from "vitest";
import type { ThresholdUnit } from "./threshold.ts";
import { showActual } from "./threshold-value.ts";

const unitOf = (kind: ThresholdUnit["kind"]): ThresholdUnit => ({ kind, scale: 1 });

it.each([
  [312.4, 200, "duration", "312 ms"],
  [200, 200, "duration", "200 ms"],
  [200.04, 200, "duration", "200.04 ms"],
  [1_000.4, 1_000, "duration", "1000.4 ms"],
  [13.7996, 13.8049, "duration", "13.7996 ms"],
  [0.010_000_1, 0.01, "percent", "1.00001 %"],
  [0.014, 0.01, "percent", "1.4 %"],
  [999.8, 1_000, "perSecond", "999.8/s"],
  [12, 11, "plain", "12"],
] as const)("%d beside a limit of %d (%s) reads %s", (actual, limit, kind, text) => {
  expect(showActual(actual, limit, unitOf(kind))).toBe(text);
});

it("never shows a value like its limit when they differ", () => {
  const value = fc.double({ min: 0.001, max: 1e6, noNaN: true });
  const near = fc.double({ min: 0.999, max: 1.001, noNaN: true });
  const kind = fc.constantFrom("duration", "percent", "perSecond", "plain");
  fc.assert(
    fc.property(value, near, kind, (limit, factor, of) => {
      const actual = limit * factor;
      fc.pre(actual !== limit);
      const unit = unitOf(of as ThresholdUnit["kind"]);
      expect(showActual(actual, limit, unit)).not.toBe(showActual(limit, limit, unit));
    }),
  );
});
