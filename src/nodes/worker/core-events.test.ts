import { describe, expect, it } from "vitest";
import { eventProblem } from "./core-events.ts";

describe("messages of a core", () => {
  it.each([
    { kind: "prepared", execution: 1 },
    { kind: "log", line: "x".repeat(100_000), isComplaint: false },
    { kind: "setupDone", execution: 1, value: undefined },
    { kind: "traced", anything: 1 },
  ])("accepts events: $kind", (event) => {
    expect(eventProblem(event)).toBeNull();
  });

  it.each([
    null,
    undefined,
    "frame",
    {},
    { kind: "unknown" },
    { kind: "log" },
    { kind: "frame", execution: 0, bytes: "text" },
    { kind: "finished", execution: -1, provided: {}, notes: null },
    { kind: "failed", execution: 0, problem: null },
  ])("rejects %j, which job code may send", (message) => {
    expect(eventProblem(message)).not.toBeNull();
  });
});
