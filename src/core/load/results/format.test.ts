import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  asTick,
  formatBytes,
  formatClock,
  formatCompact,
  formatCompactNumber,
  formatCompactPercent,
  formatCompactRate,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
  formatSeconds,
} from "./format.ts";

describe("durations", () => {
  it.each([
    [0, "0 ms"],
    [0.0004, "0.40 µs"],
    [0.042, "42.0 µs"],
    [0.9994, "999 µs"],
    [0.9995, "1.00 ms"],
    [1.234, "1.23 ms"],
    [9.995, "10.0 ms"],
    [12.34, "12.3 ms"],
    [99.95, "100 ms"],
    [999.4, "999 ms"],
    [999.5, "1.00 s"],
    [4_210, "4.21 s"],
    [59_949, "59.9 s"],
    [59_950, "1m00s"],
    [125_000, "2m05s"],
    [3_599_600, "1h00m"],
    [3_780_000, "1h03m"],
    [-5, "-5.00 ms"],
    [Number.POSITIVE_INFINITY, "–"],
  ])("%d ms reads %s", (ms, text) => {
    expect(formatMs(ms)).toBe(text);
  });

  it.each([
    [0.0114, "11 µs"],
    [0.99501, "1.0 ms"],
    [1.26, "1.3 ms"],
    [9.96, "10 ms"],
    [123.4, "120 ms"],
    [995, "1.0 s"],
    [59_500, "1m00s"],
  ])("%d ms known to two digits reads %s", (ms, text) => {
    expect(formatMs(ms, 2)).toBe(text);
  });

  it.each([
    [0, "0 s"],
    [0.25, "250 ms"],
    [30, "30.0 s"],
    [125, "2m05s"],
  ])("%d s of a run read %s", (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });

  it.each([
    ["5.00 ms", "5 ms"],
    ["0.50/s", "0.5/s"],
    ["100 ms", "100 ms"],
    ["10,000", "10,000"],
    ["12.0k/s", "12k/s"],
    ["1.25 s", "1.25 s"],
    ["0 %", "0 %"],
  ])("%s on an axis is %s", (text, tick) => {
    expect(asTick(text)).toBe(tick);
  });

  it.each([
    [0, "00:00"],
    [12.9, "00:12"],
    [725, "12:05"],
    [3_723, "1:02:03"],
  ])("a clock at %d s reads %s", (seconds, text) => {
    expect(formatClock(seconds)).toBe(text);
  });
});

describe("counts and rates", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [1_000, "1,000"],
    [1_234_567, "1,234,567"],
    [-1_234, "-1,234"],
    [-0.2, "0"],
  ])("%d is counted as %s", (count, text) => {
    expect(formatCount(count)).toBe(text);
  });

  it.each([
    [9_999, "9,999"],
    [9_999.5, "10.0k"],
    [12_345, "12.3k"],
    [999_600, "1.00M"],
    [1.5e9, "1.50G"],
  ])("%d is short as %s", (count, text) => {
    expect(formatCompact(count)).toBe(text);
  });

  it.each([
    [0, "0/s"],
    [0.214, "0.214/s"],
    [31.24, "31.2/s"],
    [1_031, "1,031/s"],
    [123_456.7, "123,457/s"],
  ])("a rate of %d reads %s", (rate, text) => {
    expect(formatRate(rate)).toBe(text);
  });

  it.each([
    [31.24, "31.2/s"],
    [1_031, "1,031/s"],
    [123_456, "123k/s"],
  ])("a rate of %d is short as %s", (rate, text) => {
    expect(formatCompactRate(rate)).toBe(text);
  });

  it.each([
    [0.00042, "4.2e-4"],
    [0.0042, "0.0042"],
    [0.5, "0.5"],
    [41.5, "41.5"],
    [188, "188"],
    [-1_234.5, "-1,235"],
    [12_345.6, "12,346"],
  ])("the number %d reads %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });
});

describe("bytes and shares", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1.00 kB"],
    [45_600_000, "45.6 MB"],
    [999_999, "1.00 MB"],
  ])("%d bytes read %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [0, "0 %"],
    [0.000001, "<0.001 %"],
    [0.00005, "0.005 %"],
    [0.00417, "0.42 %"],
    [0.0517, "5.17 %"],
    [0.014, "1.4 %"],
    [0.4561, "45.6 %"],
    [0.5, "50 %"],
    [0.99499, "99.49 %"],
    [0.9999, "99.99 %"],
    [0.99999, ">99.99 %"],
    [1, "100 %"],
    [2.51, "251 %"],
  ])("a share of %d reads %s", (share, text) => {
    expect(formatPercent(share)).toBe(text);
  });

  it.each([
    [0, "0 %"],
    [0.0001, "<1 %"],
    [0.424, "42 %"],
    [0.999, ">99 %"],
    [1, "100 %"],
  ])("a share of %d is short as %s", (share, text) => {
    expect(formatCompactPercent(share)).toBe(text);
  });
});

describe("rules of every formatted number", () => {
  const formats = {
    formatMs,
    formatSeconds,
    formatCompact,
    formatCompactNumber,
    formatCompactRate,
    formatBytes,
    formatPercent,
    formatCompactPercent,
    formatClock,
    formatCount,
    formatNumber,
    formatRate,
  };
  const named = fc.constantFrom(...Object.entries(formats));
  const sizes = fc.double({ min: -6, max: 14, noNaN: true }).map((power) => 10 ** power);

  it("is short and never a raw number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), named, (value, [, format]) => {
        const text = format(value);
        expect(text.length).toBeLessThanOrEqual(24);
        expect(text).not.toMatch(/NaN|Infinity|undefined|^-0\b(?!\.)/);
      }),
    );
  });

  it("is at most ten columns wide in its compact form", () => {
    const compact = [formatMs, formatCompact, formatCompactRate, formatBytes, formatCompactPercent];
    fc.assert(
      fc.property(sizes, fc.constantFrom(...compact), (value, format) => {
        expect(format(value).length).toBeLessThanOrEqual(10);
      }),
    );
  });

  it("never shows a larger value as a smaller one", () => {
    // Also neighbours: two values at the border between two units or two numbers of digits.
    const pair = fc.oneof(
      fc.tuple(sizes, sizes),
      fc.tuple(sizes, fc.double({ min: 1, max: 1.02, noNaN: true })).map(([a, by]) => [a, a * by]),
    );
    fc.assert(
      fc.property(pair, named, ([a = 0, b = 0], [, format]) => {
        const [low, high] = [format(Math.min(a, b)), format(Math.max(a, b))];
        expect(meaning(low), `${low} and ${high}`).toBeLessThanOrEqual(meaning(high));
      }),
      { numRuns: 2_000 },
    );
  });

  it("keeps three digits: a measured value is off by half a percent at most", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 59_900, noNaN: true }), (value) => {
        expect(Math.abs(meaning(formatMs(value)) - value * 1_000) / (value * 1_000)).toBeLessThan(
          0.00502,
        );
        expect(Math.abs(meaning(formatNumber(value)) - value) / value).toBeLessThan(0.00502);
      }),
    );
  });

  it("keeps counts exact", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e14, max: 1e14 }), (count) => {
        expect(Number(formatCount(count).replaceAll(",", ""))).toBe(count === 0 ? 0 : count);
      }),
    );
  });

  it("shows 0 % and 100 % only for exactly these values", () => {
    const part = fc.integer({ min: 1, max: 1e9 });
    fc.assert(
      fc.property(part, part, fc.constantFrom(formatPercent, formatCompactPercent), (a, b, of) => {
        expect(of(a / (a + b))).not.toMatch(/^(0|100) %$/);
        expect(of(0)).toBe("0 %");
        expect(of(1)).toBe("100 %");
      }),
      { numRuns: 1_000 },
    );
  });
});

/** Value of a text, in the smallest unit of its kind; a bound ("<1 %") lies just beyond itself. */
function meaning(text: string): number {
  const clock = /^(?:(\d+):)?(\d+):(\d+)$/.exec(text);
  if (clock !== null) {
    const [, hours = "0", minutes, seconds] = clock;
    return Number(hours) * 3_600e6 + Number(minutes) * 60e6 + Number(seconds) * 1e6;
  }
  const span = /^([\d,]+)([hm])(\d\d)[ms]$/.exec(text);
  if (span !== null) {
    const [, large = "", unit, small] = span;
    const whole = Number(large.replaceAll(",", "")) * 60 + Number(small);
    return whole * (unit === "h" ? 60e6 : 1e6);
  }
  const [, border = "", sign = "", digits = "", unit = ""] =
    /^([<>]?)(-?)([\d,.]+(?:e[+-]?\d+)?)\s?(\D*)$/.exec(text) ?? [];
  const value =
    Number(sign + digits.replaceAll(",", "")) * (SCALE[unit.replace(/\/s| ?%/, "")] ?? 1);
  return border === "" ? value : value * (border === "<" ? 0.999_999 : 1.000_001);
}

/** Times in microseconds, bytes, or thousands. */
const SCALE: Readonly<Record<string, number>> = {
  µs: 1,
  ms: 1e3,
  s: 1e6,
  h: 3_600e6,
  kh: 3_600e9,
  Mh: 3_600e12,
  Gh: 3_600e15,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  PB: 1e15,
};
