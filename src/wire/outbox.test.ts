import { describe, expect, it } from "vitest";
import { Outbox, type OutboxState } from "./outbox.ts";

const fill = (outbox: Outbox<number>, count: number, from = 0): OutboxState => {
  let state: OutboxState = "healthy";
  for (let i = 0; i < count; i++) state = outbox.enqueue("d", from + i, "normal").state;
  return state;
};

describe("the outbox", () => {
  it("tells the sender how full it is, and what to wait", () => {
    const outbox = new Outbox<number>();
    expect(fill(outbox, 349)).toBe("healthy");
    expect(fill(outbox, 1)).toBe("throttled");
    expect(fill(outbox, 75)).toBe("batching");
    expect(fill(outbox, 50)).toBe("overflow");
    expect(fill(outbox, 100)).toBe("saturated");
    expect(outbox.enqueue("d", 0, "normal").delayMs).toBe(500);
    while (outbox.next("d") !== undefined) {}
    expect(outbox.stats("d")?.state).toBe("healthy");
  });

  it("sends the most urgent first and keeps the order within a class", () => {
    const outbox = new Outbox<string>();
    for (const name of ["low1", "normal1", "high1", "critical1", "high2", "normal2"]) {
      outbox.enqueue("d", name, name.slice(0, -1) as "low");
    }
    const sent = Array.from({ length: 6 }, () => outbox.next("d"));
    expect(sent).toEqual(["critical1", "high1", "high2", "normal1", "normal2", "low1"]);
  });

  it("keeps the newest of a burst: the ring drops its oldest, and low is refused", () => {
    const outbox = new Outbox<number>();
    const dropped: number[] = [];
    for (let i = 0; i < 1_000; i++) dropped.push(...outbox.enqueue("d", i, "normal").dropped);
    expect(dropped).toEqual(Array.from({ length: 1_000 - 575 }, (_, i) => 475 + i));
    expect(outbox.enqueue("d", -1, "low").accepted).toBe(false);
    const sent: number[] = [];
    for (let item = outbox.next("d"); item !== undefined; item = outbox.next("d")) sent.push(item);
    expect(sent.slice(-100)).toEqual(Array.from({ length: 100 }, (_, i) => 900 + i));
  });

  it("never lets the less urgent displace the more urgent", () => {
    const outbox = new Outbox<string>();
    for (let i = 0; i < 575; i++) outbox.enqueue("d", `high${i}`, "high");
    expect(outbox.enqueue("d", "normal", "normal")).toMatchObject({ accepted: false, dropped: [] });
    expect(outbox.enqueue("d", "high", "high")).toMatchObject({ accepted: true });
    expect(outbox.enqueue("d", "critical", "critical")).toMatchObject({
      accepted: true,
      dropped: [],
    });
    expect(outbox.next("d")).toBe("critical");
  });

  it("keeps destinations apart and evicts the least recently used, empty ones first", () => {
    const outbox = new Outbox<number>();
    fill(outbox, 600);
    expect(outbox.enqueue("other", 1, "normal").state).toBe("healthy");
    outbox.next("other");
    for (let i = 0; i < 998; i++) outbox.enqueue(`d${i}`, i, "normal");
    expect(outbox.destinations).toBe(1_000);
    expect(outbox.enqueue("one more", 1, "normal").dropped).toEqual([]);
    expect(outbox.stats("other")).toBeNull();
    const evicted = outbox.enqueue("two more", 1, "normal").dropped;
    expect(evicted).toHaveLength(575);
    expect(outbox.destinations).toBe(1_000);
  });
});
