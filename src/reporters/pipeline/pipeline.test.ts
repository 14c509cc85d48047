import { describe, expect, it } from "vitest";
import { PayloadQueue } from "./payload-queue.ts";
import { retryAfterMs, retryWaitMs } from "./retry.ts";

const payload = (bytes: number, points = 1, to?: string) => ({
  body: new Uint8Array(bytes),
  points,
  to,
});

describe("the queue of a reporter", () => {
  it("drops the oldest beyond the limit of entries, and counts their points", () => {
    const queue = new PayloadQueue({ entriesMax: 2, bytesMax: 1_000 });
    expect([1, 2, 3].map((points) => queue.add(payload(1, points)))).toEqual([0, 0, 1]);
    expect(queue.clear()).toBe(5);
  });

  it("drops as many as needed to stay within its bytes", () => {
    const queue = new PayloadQueue({ entriesMax: 100, bytesMax: 100 });
    expect([40, 40, 90].map((bytes) => queue.add(payload(bytes)))).toEqual([0, 0, 2]);
    expect(queue.bytes).toBe(90);
    expect(queue.add(payload(101, 7))).toBe(7);
    expect(queue.bytes).toBe(90);
  });

  it("joins payloads for the same destination, up to a size", () => {
    const queue = new PayloadQueue({ entriesMax: 100, bytesMax: 1_000 });
    for (const to of ["a", "a", "a", "b"]) queue.add(payload(10, 1, to));
    expect(queue.take(25)).toMatchObject({ points: 2, to: "a" });
    expect(queue.take(25)).toMatchObject({ points: 1, to: "a" });
    expect(queue.take(25)).toMatchObject({ points: 1, to: "b" });
    expect(queue.take(25)).toBeUndefined();
    expect(queue.bytes).toBe(0);
  });
});

describe("the pause before the next attempt", () => {
  it("doubles up to half a minute, with half of it random", () => {
    expect([1, 2, 3].map((tries) => retryWaitMs(tries, 1, null))).toEqual([500, 1_000, 2_000]);
    expect(retryWaitMs(1, 0, null)).toBe(250);
    expect(retryWaitMs(1_000, 1, null)).toBe(30_000);
  });

  it("follows the server's request, up to a minute", () => {
    expect(retryWaitMs(1, 1, 7_000)).toBe(7_000);
    expect(retryWaitMs(1, 1, 3_600_000)).toBe(60_000);
  });

  it.each([
    ["3", 3_000],
    ["Mon, 16 Nov 2026 12:00:05 GMT", 5_000],
    ["Mon, 16 Nov 2026 11:00:00 GMT", 0],
    ["soon", null],
    [undefined, null],
  ])("reads Retry-After: %s", (header, wanted) => {
    expect(retryAfterMs(header, Date.parse("2026-11-16T12:00:00Z"))).toBe(wanted);
  });
});
