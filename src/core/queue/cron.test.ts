import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextTick, parseCron } from "./cron.ts";

function ticks(text: string, after: string, count: number): string[] {
  const parsed = parseCron(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  const found: string[] = [];
  let at = Date.parse(after);
  for (let i = 0; i < count; i++) {
    at = nextTick(parsed.cron, at) ?? Number.NaN;
    found.push(new Date(at).toISOString().slice(0, 16));
  }
  return found;
}

describe("cron", () => {
  it.each([
    ["* * * * *", "2026-01-01T00:00:30Z", ["2026-01-01T00:01", "2026-01-01T00:02"]],
    ["*/15 * * * *", "2026-01-01T00:15:00Z", ["2026-01-01T00:30", "2026-01-01T00:45"]],
    [
      "5-10/2 3 * * *",
      "2026-01-01T03:05:00Z",
      ["2026-01-01T03:07", "2026-01-01T03:09", "2026-01-02T03:05"],
    ],
    ["0 12 * * mon-fri", "2026-11-13T12:00:00Z", ["2026-11-16T12:00", "2026-11-17T12:00"]],
    ["0 0 29 2 *", "2026-01-01T00:00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00"]],
    ["0 0 31 * *", "2026-04-01T00:00:00Z", ["2026-05-31T00:00", "2026-07-31T00:00"]],
    [
      "0 0 13 * fri",
      "2026-02-01T00:00:00Z",
      ["2026-02-06T00:00", "2026-02-13T00:00", "2026-02-20T00:00"],
    ],
    ["0 0 * * 7", "2026-11-14T00:00:00Z", ["2026-11-15T00:00", "2026-11-22T00:00"]],
    ["0 0 1 jan,jul *", "2026-01-01T00:00:00Z", ["2026-07-01T00:00", "2027-01-01T00:00"]],
    ["@hourly", "2026-12-31T23:00:00Z", ["2027-01-01T00:00"]],
  ])("%s after %s", (text, after, expected) => {
    expect(ticks(text, after, expected.length)).toEqual(expected);
  });

  it.each([
    ["* * * *", /has 4 fields/],
    ["60 * * * *", /outside 0-59/],
    ["* 5-2 * * *", /runs backwards/],
    ["*/0 * * * *", /goes nowhere/],
    ["a * * * *", /outside|not a number/],
    ["1;2 * * * *", /not a number/],
    ["0 0 30 feb *", /never happens/],
  ])("rejects %s", (text, message) => {
    const parsed = parseCron(text);
    expect(parsed.ok ? "" : parsed.problem).toMatch(message);
  });

  it("gives the first minute that matches, by the platform's calendar", () => {
    const field = (low: number, high: number) =>
      fc.oneof(fc.constant("*"), fc.integer({ min: low, max: high }).map(String));
    fc.assert(
      fc.property(
        fc.tuple(field(0, 59), field(0, 23), fc.constant("*"), fc.constant("*"), field(0, 6)),
        fc.integer({ min: 0, max: 4_000_000_000_000 }),
        (fields, after) => {
          const parsed = parseCron(fields.join(" "));
          if (!parsed.ok) throw new Error(parsed.problem);
          const tick = nextTick(parsed.cron, after) ?? 0;
          const date = new Date(tick);
          const [minute, hour, , , weekday] = fields;
          expect(tick).toBeGreaterThan(after);
          if (minute !== "*") expect(date.getUTCMinutes()).toBe(Number(minute));
          if (hour !== "*") expect(date.getUTCHours()).toBe(Number(hour));
          if (weekday !== "*") expect(date.getUTCDay()).toBe(Number(weekday));
          expect(tick % 60_000).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });
});
