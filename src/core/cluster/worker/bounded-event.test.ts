import { describe, expect, it } from "vitest";
import { encodeStreamMessage } from "../../../wire/registry.ts";
import type { RelayedEvent } from "../messages.ts";
import { bounded } from "./bounded-event.ts";

const circle: { self?: unknown } = {};
circle.self = circle;

function finished(provided: Readonly<Record<string, unknown>>): RelayedEvent {
  return { kind: "finished", execution: 3, provided, notes: [], counts: [], faults: [] };
}

/** Throws if the event cannot be encoded. */
function send(event: RelayedEvent): Uint8Array {
  const row = { worker: "w", incarnation: 1, job: "j", view: 1, first: 0 };
  const events = [{ kind: "core", core: 0, event }] as const;
  return encodeStreamMessage({ name: "events", correlation: 1, value: { ...row, events } });
}

describe("a value from user code", () => {
  it("is sent when it is plain data", () => {
    for (const value of [undefined, null, 1, "text", [1, { a: true }], { list: [] }]) {
      const event = { kind: "setupDone", execution: 3, value } as const;
      expect(bounded(event)).toEqual(event);
      expect(bounded(finished({ value }))).toEqual(finished({ value }));
    }
  });

  it("fails its workflow with the path when it is not plain data, and leaves the worker running (CODEC-6)", () => {
    for (const [value, problem] of [
      [{ id: 1n }, ".id is a bigint"],
      [[new Map()], "[0] is a Map"],
      [circle, "deep"],
    ] as const) {
      for (const event of [
        { kind: "setupDone", execution: 3, value } as const,
        finished({ key: value }),
      ]) {
        const result = bounded(event);
        expect(result).toMatchObject({ kind: "failed", execution: 3 });
        expect(JSON.stringify(result)).toContain(problem);
        send(result);
      }
    }
  });

  it("fails its workflow when it is too large for the job log", () => {
    const result = bounded({ kind: "setupDone", execution: 3, value: "x".repeat(500_000) });
    expect(result).toMatchObject({ kind: "failed" });
    expect(JSON.stringify(result)).toContain("at most 458752 are handed on");
  });

  it("is clipped when it is a source location", () => {
    const problem = { message: "m", location: "l".repeat(100_000), mistake: false };
    const result = bounded({ kind: "loadFailed", problem });
    expect(send(result).length).toBeLessThan(16_384);
  });
});
