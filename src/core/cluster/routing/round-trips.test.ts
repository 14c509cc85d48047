import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { qualityOf, RoundTrips, UNKNOWN_DISTANCE } from "./round-trips.ts";

const samples = fc.array(fc.integer({ min: 0, max: 10_000 }), { minLength: 1, maxLength: 50 });

function measured(all: readonly number[]): RoundTrips {
  const trips = new RoundTrips();
  for (const ms of all) trips.record(ms, 0);
  return trips;
}

describe("distance to a datacenter (AD-36.1)", () => {
  it("is never below the shortest round trip and does not shrink when samples grow", () => {
    fc.assert(
      fc.property(samples, fc.integer({ min: 0, max: 500 }), (all, moreMs) => {
        const { upperMs } = measured(all).distance(0);
        const longer = all.map((ms) => Math.min(10_000, ms + moreMs));
        const isWhole = all.every((ms) => ms + moreMs <= 10_000);
        expect(upperMs).toBeGreaterThanOrEqual(Math.max(1, Math.min(...all)));
        if (isWhole)
          expect(measured(longer).distance(0).upperMs).toBeGreaterThanOrEqual(upperMs - 1e-6);
      }),
    );
  });

  it("has a quality from 0 to 1 that falls with deviation and age", () => {
    const count = fc.nat(100);
    const some = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(count, some, some, some, some, (of, deviation, age, more, older) => {
        const quality = qualityOf(of, deviation, age);
        expect(quality).toBeGreaterThanOrEqual(0);
        expect(quality).toBeLessThanOrEqual(1);
        expect(qualityOf(of, deviation + more, age)).toBeLessThanOrEqual(quality);
        expect(qualityOf(of, deviation, age + older)).toBeLessThanOrEqual(quality);
        expect(qualityOf(of + 1, deviation, age)).toBeGreaterThanOrEqual(quality);
      }),
    );
  });

  it("is unknown before the first sample and ignores invalid samples", () => {
    const trips = measured([Number.NaN, -1, Number.POSITIVE_INFINITY, 10_001]);
    expect(trips.distance(0)).toEqual(UNKNOWN_DISTANCE);
  });
});
