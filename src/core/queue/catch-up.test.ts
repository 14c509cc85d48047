import { describe, expect, it } from "vitest";
import { type CatchUp, dueTicks } from "./catch-up.ts";
import { nextTick, parseCron } from "./cron.ts";

function due(text: string, first: string, now: string, catchUp: CatchUp, most = 100): string[] {
  const parsed = parseCron(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  const span = { firstMs: Date.parse(first), nowMs: Date.parse(now) };
  const ticks = dueTicks((after) => nextTick(parsed.cron, after), span, catchUp, most);
  return ticks.map((tick) => new Date(tick).toISOString().slice(5, 16));
}

describe("due ticks", () => {
  const first = "2026-05-01T00:00:00Z";

  it.each<[CatchUp]>([["none"], ["last"], ["all"]])("are the one of the moment by %s", (policy) => {
    expect(due("0 * * * *", first, "2026-05-01T00:00:59Z", policy)).toEqual(["05-01T00:00"]);
  });

  it("catch up with none, the last or all of the missed ones", () => {
    const now = "2026-05-01T03:30:00Z";
    expect(due("0 * * * *", first, now, "none")).toEqual([]);
    expect(due("0 * * * *", first, now, "last")).toEqual(["05-01T03:00"]);
    const all = ["05-01T00:00", "05-01T01:00", "05-01T02:00", "05-01T03:00"];
    expect(due("0 * * * *", first, now, "all")).toEqual(all);
    expect(due("0 * * * *", first, now, "all", 2)).toEqual(all.slice(2));
  });

  it("are found without checking every tick of a year", () => {
    const now = "2027-05-01T00:00:30Z";
    expect(due("* * * * *", first, now, "last")).toEqual(["05-01T00:00"]);
    expect(due("* * * * *", first, now, "all", 3)).toEqual([
      "04-30T23:58",
      "04-30T23:59",
      "05-01T00:00",
    ]);
    expect(due("0 0 1 5 *", first, now, "all")).toEqual(["05-01T00:00", "05-01T00:00"]);
  });
});
