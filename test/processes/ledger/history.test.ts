import { describe, expect, it } from "vitest";
import { checkHistory, type Operation } from "./history.ts";

const LOG = {
  job: "j",
  appliedSeq: 3,
  events: [
    { seq: 0, eventId: "create/j" },
    { seq: 1, eventId: "a" },
    { seq: 3, eventId: "b" },
  ],
};

function append(eventId: string, times: readonly [number, number], seq: number | null): Operation {
  const [invokedAt, returnedAt] = times;
  return { job: "j", kind: "append", eventId, invokedAt, returnedAt, seq, chain: null };
}

function read(times: readonly [number, number], seq: number, chain = `c${seq}`): Operation {
  const [invokedAt, returnedAt] = times;
  return { job: "j", kind: "read", eventId: null, invokedAt, returnedAt, seq, chain };
}

const A = append("a", [0, 10], 1);
const B = append("b", [20, 30], 3);

describe("the history checker", () => {
  it("accepts what one log explains, also when operations overlap or their end is unknown", () => {
    expect(
      checkHistory([A, B, read([11, 19], 1), read([22, 28], 3), read([31, 40], 3)], [LOG]),
    ).toEqual([]);
    expect(checkHistory([A, append("b", [5, Infinity], null)], [LOG])).toEqual([]);
    expect(checkHistory([A, B, append("never", [5, Infinity], null)], [LOG])).toEqual([]);
  });

  it.each([
    ["an acknowledged event that is lost", [A, B, append("c", [40, 50], 4)], "is lost"],
    ["an event at another place than acknowledged", [append("a", [0, 10], 2), B], "lies at 1"],
    ["a stale strong read", [A, B, read([35, 40], 1)], "began after b at 3"],
    [
      "a read that goes back behind another",
      [A, append("b", [20, 99], 3), read([21, 30], 3), read([31, 40], 1)],
      "began after read",
    ],
    [
      "an event placed before one that had returned",
      [append("b", [0, 10], 3), append("a", [20, 30], 1)],
      "a at 1 began after b at 3",
    ],
    ["an event nobody asked for", [A], "b was never asked for"],
    [
      "two histories",
      [A, B, read([31, 40], 3), read([41, 50], 3, "other")],
      "two histories up to 3",
    ],
  ])("finds %s", (_what, operations, problem) => {
    expect(checkHistory(operations, [LOG]).join("\n")).toContain(problem);
  });

  it("finds an event that was committed twice, and a lost job", () => {
    const twice = { ...LOG, events: [...LOG.events, { seq: 4, eventId: "a" }] };
    expect(checkHistory([A, B], [twice]).join("\n")).toContain("a is in the log twice");
    expect(checkHistory([A, B], [])).toEqual(["j: acknowledged, and gone"]);
  });
});
