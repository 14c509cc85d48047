import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCount,
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
  formatSeconds,
} from "./format.ts";

const THIN = "\u202f";

describe("figures for people", () => {
  it.each([
    [formatCount(0), "0"],
    [formatCount(1_234_567), `1${THIN}234${THIN}567`],
    [formatNumber(0.04217), "0.042"],
    [formatNumber(12.345), "12.3"],
    [formatNumber(-1_234.5), `-1${THIN}235`],
    [formatNumber(0.0001), "0"],
    [formatMs(0.42), "0.42 ms"],
    [formatMs(999.4), "999 ms"],
    [formatMs(4_213), "4.21 s"],
    [formatMs(150_000), "2.5 min"],
    [formatSeconds(65.2), "1 min 5 s"],
    [formatSeconds(3_725), "1 h 2 min"],
    [formatRate(1_018.3), `1${THIN}018/s`],
    [formatBytes(999), "999 B"],
    [formatBytes(999_600), "1 MB"],
    [formatBytes(1.5e9), "1.5 GB"],
    [formatPercent(0.0517), "5.17 %"],
    [formatPercent(1), "100 %"],
    [formatPercent(0), "0 %"],
    [formatPercent(0.000_001), "<0.001 %"],
    [formatPercent(0.999_99), ">99.99 %"],
  ])("writes %s", (actual, expected) => {
    expect(actual).toBe(expected);
  });
});
