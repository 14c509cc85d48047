import { describe, expect, it } from "vitest";
import type { StreamId } from "../link/types.ts";
import { Askers } from "./askers.ts";

const [first, second] = [1 as StreamId, 2 as StreamId];

describe("who asks a process", () => {
  it("is answered once", () => {
    const askers = new Askers<{ readonly stream: StreamId }>();
    const id = askers.add({ stream: first });
    expect(askers.take(id)).toEqual({ stream: first });
    expect(askers.take(id)).toBeUndefined();
  });

  it("may have a bounded number of requests under way, and others are not held up by it", () => {
    const askers = new Askers<{ readonly stream?: StreamId }>();
    const ids: number[] = [];
    while (!askers.isFull(first)) ids.push(askers.add({ stream: first }));
    expect(ids).toHaveLength(64);
    expect(askers.isFull(second)).toBe(false);
    // What the process asks itself counts for nobody.
    for (let i = 0; i < 100; i++) askers.add({});
    askers.take(ids[0] ?? 0);
    expect(askers.isFull(first)).toBe(false);
  });

  it("is forgotten with its connection", () => {
    const askers = new Askers<{ readonly stream: StreamId }>();
    const ids = [first, second, first].map((stream) => askers.add({ stream }));
    askers.forget(first);
    expect(ids.map((id) => askers.take(id))).toEqual([undefined, { stream: second }, undefined]);
  });
});
