import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseCron } from "./cron.ts";
import { nextTickIn, type OffsetAt } from "./zoned-cron.ts";

const HOUR_MS = 3_600_000;

/** Offsets in hours, each from its time on. */
function zone(first: number, ...changes: readonly (readonly [string, number])[]): OffsetAt {
  return (utcMs) => {
    const past = changes.filter(([from]) => Date.parse(from) <= utcMs);
    return (past.at(-1)?.[1] ?? first) * HOUR_MS;
  };
}

const berlin = zone(1, ["2026-03-29T01:00Z", 2], ["2026-10-25T01:00Z", 1]);
const lordHowe = zone(11, ["2026-04-04T15:00Z", 10.5], ["2026-10-03T15:30Z", 11]);
/** A whole day was skipped. */
const samoa = zone(-10, ["2011-12-30T10:00Z", 14]);

function ticks(text: string, offsetAt: OffsetAt, after: string, count: number): string[] {
  const parsed = parseCron(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  const found: string[] = [];
  let at = Date.parse(after);
  for (let i = 0; i < count; i++) {
    at = nextTickIn(parsed.cron, at, offsetAt) ?? Number.NaN;
    found.push(new Date(at).toISOString().slice(5, 16));
  }
  return found;
}

describe("cron in a time zone", () => {
  it.each<[string, string, OffsetAt, string, readonly string[]]>([
    [
      "keeps its hour across clock changes",
      "0 9 * * *",
      berlin,
      "2026-03-28T00:00Z",
      ["03-28T08:00", "03-29T07:00"],
    ],
    [
      "ticks at the change when its time is skipped",
      "30 2 * * *",
      berlin,
      "2026-03-28T12:00Z",
      ["03-29T01:00", "03-30T00:30"],
    ],
    [
      "ticks once for several skipped times",
      "*/15 2 * * *",
      berlin,
      "2026-03-28T12:00Z",
      ["03-29T01:00", "03-30T00:00"],
    ],
    [
      "ticks only the first time in a repeated hour",
      "30 2 * * *",
      berlin,
      "2026-10-24T12:00Z",
      ["10-25T00:30", "10-26T01:30"],
    ],
    [
      "does not repeat in a repeated hour",
      "*/20 2 * * *",
      berlin,
      "2026-10-25T00:40Z",
      ["10-26T01:00"],
    ],
    [
      "continues after the repeated hour",
      "*/20 2 * * *",
      berlin,
      "2026-10-25T01:10Z",
      ["10-26T01:00"],
    ],
    [
      "of every hour skips no elapsed hour",
      "0 * * * *",
      berlin,
      "2026-03-28T23:30Z",
      ["03-29T00:00", "03-29T01:00", "03-29T02:00"],
    ],
    [
      "of every hour ticks both times in a repeated hour",
      "30 * * * *",
      berlin,
      "2026-10-24T23:45Z",
      ["10-25T00:30", "10-25T01:30", "10-25T02:30"],
    ],
    [
      "across a change of half an hour",
      "30 1 * * *",
      lordHowe,
      "2026-04-03T20:00Z",
      ["04-04T14:30", "04-05T15:00"],
    ],
    [
      "in a skipped half hour",
      "15 2 * * *",
      lordHowe,
      "2026-10-03T00:00Z",
      ["10-03T15:30", "10-04T15:15"],
    ],
    [
      "of every hour with a repeated half hour",
      "45 * * * *",
      lordHowe,
      "2026-04-04T14:00Z",
      ["04-04T14:45", "04-04T15:15", "04-04T16:15"],
    ],
    [
      "on a skipped day",
      "0 12 30 12 *",
      samoa,
      "2011-12-29T12:00Z",
      ["12-30T10:00", "12-29T22:00"],
    ],
    [
      "on a far day, by that day's offset",
      "0 0 1 7 *",
      berlin,
      "2026-01-01T00:00Z",
      ["06-30T22:00"],
    ],
    [
      "every minute of a far day",
      "* * 1 7 *",
      berlin,
      "2026-01-01T00:00Z",
      ["06-30T22:00", "06-30T22:01"],
    ],
  ])("%s: %s", (_, text, offsetAt, after, expected) => {
    expect(ticks(text, offsetAt, after, expected.length)).toEqual(expected);
  });

  it("ticks once on every day, whatever the clocks do", () => {
    const minute = fc.integer({ min: 0, max: 59 });
    const hour = fc.integer({ min: 0, max: 23 });
    fc.assert(
      fc.property(minute, hour, fc.constantFrom(berlin, lordHowe), (minutes, hours, offsetAt) => {
        const found = ticks(`${minutes} ${hours} * * *`, offsetAt, "2026-01-01T12:00Z", 364);
        expect(new Set(found).size).toBe(found.length);
        expect(["12-30", "12-31"]).toContain(found.at(-1)?.slice(0, 5));
      }),
      { numRuns: 20 },
    );
  });
});
