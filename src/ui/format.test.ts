import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatClock,
  formatCompact,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
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
    [0.214, "0.21/s"],
    [31.24, "31.2/s"],
    [1_031, "1,031/s"],
    [123_456, "123k/s"],
  ])("a rate of %d reads %s", (rate, text) => {
    expect(formatRate(rate)).toBe(text);
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
    [0.00001, "<0.01 %"],
    [0.0042, "0.42 %"],
    [0.014, "1.4 %"],
    [0.5, "50 %"],
    [0.99999, ">99.99 %"],
    [0.9999, "99.99 %"],
    [0.99499, "99.49 %"],
    [1, "100 %"],
    [2.51, "251 %"],
  ])("a share of %d reads %s", (share, text) => {
    expect(formatPercent(share)).toBe(text);
  });
});

it("every figure stays short and shows no raw number", () => {
  const formats = [
    formatMs,
    formatClock,
    formatCompact,
    formatRate,
    formatBytes,
    formatPercent,
    formatNumber,
  ];
  fc.assert(
    fc.property(
      fc.double({ min: 0, noNaN: true }),
      fc.constantFrom(...formats),
      (value, format) => {
        const text = format(value);
        expect(text.length).toBeLessThanOrEqual(16);
        expect(text).not.toMatch(/NaN|Infinity|undefined/);
      },
    ),
  );
});
