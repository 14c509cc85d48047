import { describe, expect, it } from "vitest";
import { RETURN_MS_MAX, ReturnSlots } from "./return-slots.ts";

describe("retry slots of rejected clients", () => {
  it("are spaced at twice the recent service rate", () => {
    const slots = new ReturnSlots();
    for (let at = 0; at < 5_000; at += 100) slots.served(at);
    expect([slots.perSecond(5_000), slots.perSecond(10_000)]).toEqual([10, 5]);
    const told = Array.from({ length: 10 }, () => slots.take(1_000, 10_000));
    expect(told).toEqual([1_000, 1_100, 1_200, 1_300, 1_400, 1_500, 1_600, 1_700, 1_800, 1_900]);
    // Later clients are queued behind those before them.
    expect(slots.take(1_000, 10_250)).toBe(1_750);
    expect(slots.take(1_000, 60_000)).toBe(1_000);
  });

  it("become fewer when many are rejected again, and more when few are", () => {
    const slots = new ReturnSlots();
    /**
     * For half a minute ten a second are served, and `refusedPerTen` beside each ten are rejected. Gap between the next
     * two:
     */
    const gapMs = (from: number, refusedPerTen: number): number => {
      const until = from + 30_000;
      for (let at = from; at < until; at += 100) {
        slots.served(at);
        if ((at / 100) % 10 < refusedPerTen) slots.take(0, at);
      }
      const told = slots.take(0, until);
      return slots.take(0, until) - told;
    };
    const gaps = [0, 10, 2, 0].map((refused, at) => gapMs(at * 30_000, refused));
    expect(gaps.map((ms) => Math.round(ms / 10) * 10)).toEqual([50, 190, 190, 50]);
  });

  it("never exceed the maximum delay, however many there are", () => {
    const slots = new ReturnSlots();
    const told = Array.from({ length: 1_000 }, () => slots.take(500, 0));
    expect(Math.max(...told)).toBeLessThanOrEqual(RETURN_MS_MAX + 500);
    expect(Math.min(...told)).toBe(500);
    // Spread over the whole interval, not bunched.
    const thirds = [0, 1, 2].map(
      (third) => told.filter((ms) => Math.floor((3 * ms) / (RETURN_MS_MAX + 501)) === third).length,
    );
    for (const count of thirds) expect(count).toBeGreaterThan(250);
  });

  it("forget an old service rate", () => {
    const slots = new ReturnSlots();
    for (let at = 0; at < 100; at++) slots.served(0);
    expect([slots.perSecond(4_999), slots.perSecond(10_000)]).toEqual([20, 10]);
    expect(slots.perSecond(30_000)).toBe(2);
  });
});
