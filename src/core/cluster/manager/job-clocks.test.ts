import { expect, it } from "vitest";
import type { LogEntry } from "../../ledger/group/messages.ts";
import { JobClocks } from "./job-clocks.ts";
import { encodeRunEntry } from "./run-entries.ts";
import { contextOf } from "./testing/context.ts";

const WALL = 1_700_000_000_000;

/** Entry decided by a leader `at` ms after the group began, with the given wall clock. */
function decided(at: number, wall = WALL + at): LogEntry {
  const data = encodeRunEntry({ kind: "start", view: 1, at });
  const place = { seq: 1, epoch: 1, view: 1, kind: "op", eventId: `${at}`, logical: 0 } as const;
  return { ...place, wall, data, members: [] };
}

it("counts the downtime of a manager", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  // The manager is up again for a second, 20 s after the group began.
  context.setTime(1_000, WALL + 20_000);
  clocks.onApplied("job", decided(2_000), true);
  clocks.onApplied("job", decided(7_000), true);
  expect(clocks.beganAt("job")).toBe(1_000 - 20_000);
  clocks.forget("job");
  expect(clocks.beganAt("job")).toBeNull();
});

it("uses entries of others at arrival, whatever their wall clocks say", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  context.setTime(50_000, WALL + 3_600_000);
  clocks.onApplied("job", decided(10_000, WALL), false);
  expect(clocks.beganAt("job")).toBe(40_000);
  // The earliest arrival is the most accurate: the next one was late.
  context.setTime(53_000, WALL + 3_603_000);
  clocks.onApplied("job", decided(11_000, WALL), false);
  expect(clocks.beganAt("job")).toBe(40_000);
});

it("does not move back for an entry whose wall clock was ahead", () => {
  const context = contextOf();
  const clocks = new JobClocks(context);
  context.setTime(1_000, WALL);
  clocks.onApplied("job", decided(2_000, WALL + 3_600_000), true);
  expect(clocks.beganAt("job")).toBe(-1_000);
});
