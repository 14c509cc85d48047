import { expect, it } from "vitest";
import type { LogEntry } from "../../ledger/group/messages.ts";
import { JobClocks } from "./job-clocks.ts";
import { encodeRunEntry } from "./run-entries.ts";
import { contextOf } from "./testing/context.ts";

const WALL = 1_700_000_000_000;

/** What a leader decided so long after the group began, by the wall clock so much later. */
function decided(at: number, wall = WALL + at): LogEntry {
  const data = encodeRunEntry({ kind: "start", view: 1, at });
  const place = { seq: 1, epoch: 1, view: 1, kind: "op", eventId: `${at}`, logical: 0 } as const;
  return { ...place, wall, data, members: [] };
}

it("counts the time in which a manager was down", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  // It is there again for a second, 20 s after the group began.
  context.setTime(1_000, WALL + 20_000);
  clocks.heard("job", decided(2_000), true);
  clocks.heard("job", decided(7_000), true);
  expect(clocks.beganAt("job")).toBe(1_000 - 20_000);
  clocks.forget("job");
  expect(clocks.beganAt("job")).toBeNull();
});

it("takes what comes from others as it comes, whatever their wall clocks say", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  context.setTime(50_000, WALL + 3_600_000);
  clocks.heard("job", decided(10_000, WALL), false);
  expect(clocks.beganAt("job")).toBe(40_000);
  // Soonest is best: the next one was late.
  context.setTime(53_000, WALL + 3_603_000);
  clocks.heard("job", decided(11_000, WALL), false);
  expect(clocks.beganAt("job")).toBe(40_000);
});

it("does not go back for an entry whose wall clock was ahead", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  context.setTime(1_000, WALL);
  clocks.heard("job", decided(2_000, WALL + 3_600_000), true);
  expect(clocks.beganAt("job")).toBe(-1_000);
});
