import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DURATION_MS_MAX, formatDuration, parseDuration } from "./duration.ts";

describe("a duration", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["1m30s", 90_000],
    ["1.5h", 5_400_000],
    ["500us", 0.5],
    ["1d", 86_400_000],
    [" 10s ", 10_000],
    [1_500, 1_500],
    [0, 0],
  ])("%s is %d ms (C30-13)", (text, ms) => {
    expect(parseDuration(text)).toEqual({ ok: true, ms });
  });

  it.each([
    ["", "a duration is empty"],
    ["30", 'did you mean "30s"?'],
    ["-5s", "is not a duration"],
    ["5 s", "is not a duration"],
    ["s", "is not a duration"],
    [-1, "must be zero or more"],
    [Number.NaN, "must be zero or more"],
    [Number.POSITIVE_INFINITY, "must be zero or more"],
    ["9999999h", "longer than a year"],
    [undefined, "not undefined"],
    [{}, "not object"],
  ])("%s is refused", (text, problem) => {
    const result = parseDuration(text);
    expect(result.ok ? "" : result.problem).toContain(problem);
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const result = parseDuration(value);
        if (result.ok) expect(result.ms >= 0 && result.ms <= DURATION_MS_MAX).toBe(true);
      }),
    );
  });

  it.each([
    [0, "0ms"],
    [0.42, "0.42ms"],
    [12.34, "12.3ms"],
    [312.4, "312ms"],
    [4_210, "4.21s"],
    [59_949, "59.9s"],
    [125_000, "2m05s"],
    [3_780_000, "1h03m"],
  ])("of %d ms is shown as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it("that was shown can be read again, nearly the same", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 1e9, noNaN: true }), (ms) => {
        const result = parseDuration(formatDuration(ms));
        if (!result.ok) throw new Error(result.problem);
        expect(Math.abs(result.ms - ms)).toBeLessThanOrEqual(Math.max(0.005, ms * 0.06));
      }),
    );
  });
});
