import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { incarnation, nodeId } from "../../base/ids.ts";
import { BroadcastQueue, keyOf, QUEUE_LENGTH_MAX, retransmitLimit } from "./broadcast-queue.ts";
import type { Update } from "./messages.ts";
import { updateBytesMax } from "./messages.ts";
import { alive, dead, left, record, suspect } from "./testing/bench.ts";

const take = { budgetBytes: 1_000, overheadBytes: 0, sendsMax: 4, updatesMax: 255, counted: true };
const user = (sequence: number, bytes: number): Update => ({
  kind: "user",
  origin: nodeId("o"),
  boot: 1,
  sequence,
  payload: new Uint8Array(bytes),
});

describe("the broadcast queue", () => {
  it("B-40: newer news about a member replaces older and restarts its send count", () => {
    const queue = new BroadcastQueue(updateBytesMax);
    queue.push(suspect("a", 1, "x"));
    queue.take(take);
    queue.take(take);
    queue.push(alive("a", 2));
    expect(queue.length).toBe(1);
    const sent = Array.from({ length: 6 }, () => queue.take(take)).filter(
      (list) => list.length > 0,
    );
    expect(sent).toHaveLength(4);
    expect(sent.flat().every((update) => update.kind === "alive")).toBe(true);
  });

  it("does not count riders to a stranger as sends", () => {
    const queue = new BroadcastQueue(updateBytesMax);
    queue.push(suspect("a", 1, "x"));
    for (let at = 0; at < 20; at++) {
      expect(queue.take({ ...take, counted: false })).toHaveLength(1);
    }
    const sent = Array.from({ length: 6 }, () => queue.take(take)).flat();
    expect(sent).toHaveLength(4);
    expect(queue.length).toBe(0);
  });

  it.each([
    [3, 0, 0, 0],
    [3, 1, 0, 3],
    [3, 99, 0, 6],
    [2, 5, 8, 8],
    [4, 1_000, 8, 16],
  ])("B-41: limit(mult %d, %d members, floor %d) is %d", (mult, members, floor, limit) => {
    expect(retransmitLimit(mult, members, floor)).toBe(limit);
  });

  it.each([
    [2, 4],
    [3, 3],
  ])("B-42: four 18-byte updates in 80 bytes with overhead %d: %d fit", (overheadBytes, fit) => {
    const queue = new BroadcastQueue(() => 18);
    for (const name of ["a", "b", "c", "d"]) queue.push(alive(name, 1));
    expect(queue.take({ ...take, budgetBytes: 80, overheadBytes })).toHaveLength(fit);
  });

  it("B-43: fewest sends first, then the largest, then the newest", () => {
    const queue = new BroadcastQueue(updateBytesMax);
    queue.push(alive("told", 1));
    queue.take(take);
    queue.push(alive("small", 1));
    queue.push(alive("much-longer-name", 1));
    queue.push(alive("newer", 1));
    const order = queue.take(take).map(keyOf);
    expect(order).toEqual(["much-longer-name", "newer", "small", "told"]);
  });

  it("lets news about its own member board first, however many joins wait", () => {
    const queue = new BroadcastQueue(updateBytesMax, "me");
    for (let i = 0; i < 100; i++) {
      queue.push({ kind: "join", node: record(`j${i}`), incarnation: incarnation(1) });
    }
    queue.push(alive("me", 2));
    for (let i = 0; i < 3; i++) expect(queue.take(take).map(keyOf)[0]).toBe("me");
  });

  // UDP-2
  it("sends JOIN, LEAVE, ALIVE, SUSPECT, DEAD in this order, after the slot for the oldest accusation", () => {
    const queue = new BroadcastQueue(updateBytesMax);
    queue.push(dead("d", 1, "x"));
    queue.push(suspect("s", 1, "x"));
    queue.push(alive("a", 1));
    queue.push(left("l", 1));
    queue.push({ kind: "join", node: record("j"), incarnation: incarnation(1) });
    const kinds = queue.take(take).map(({ kind }) => kind);
    expect(kinds).toEqual(["dead", "join", "left", "alive", "suspect"]);
  });

  it("an accusation leaves in every packet even when joins fill it (UDP-5)", () => {
    const queue = new BroadcastQueue(() => 100);
    for (let i = 0; i < 50; i++) queue.push(alive(`n${i}`, 1));
    queue.push(dead("d", 1, "x"));
    for (let i = 0; i < 3; i++) {
      expect(queue.take({ ...take, budgetBytes: 300 }).map(keyOf)).toContain("d");
    }
  });

  it("B-44: a full queue keeps the newest and reports it", () => {
    const queue = new BroadcastQueue(() => 20);
    let overflowed = 0;
    for (let i = 0; i < QUEUE_LENGTH_MAX + 10; i++) {
      if (queue.push(alive(`n${i}`, 1))) overflowed++;
    }
    expect(queue.length).toBe(QUEUE_LENGTH_MAX);
    expect([overflowed, queue.dropped]).toEqual([10, 10]);
    expect(queue.has("n9")).toBe(false);
    expect(queue.has(`n${QUEUE_LENGTH_MAX + 9}`)).toBe(true);
  });

  it("B-45: user gossip keeps a quarter of the bytes under a flood of membership news", () => {
    const queue = new BroadcastQueue(updateBytesMax);
    for (let i = 0; i < 500; i++) queue.push(alive(`n${i}`, 1));
    queue.push(user(1, 100));
    expect(queue.take(take).some(({ kind }) => kind === "user")).toBe(true);
  });

  it("never exceeds its bytes, never sends an update too often, and drops none unsent", () => {
    const anUpdate = fc.oneof(
      fc.nat(30).map((n) => alive(`n${n}`, 1)),
      fc.nat(30).map((n) => dead(`n${n}`, 1, "x")),
      fc.nat(30).map((n) => user(n, n * 3)),
    );
    fc.assert(
      fc.property(
        fc.array(anUpdate, { maxLength: 40 }),
        fc.integer({ min: 60, max: 400 }),
        (updates, budgetBytes) => {
          const queue = new BroadcastQueue(updateBytesMax);
          for (const update of updates) queue.push(update);
          const wanted = new Set(
            updates.filter((update) => updateBytesMax(update) <= budgetBytes).map(keyOf),
          );
          const sends = new Map<string, number>();
          for (let i = 0; i < 400 && queue.length > 0; i++) {
            const riders = queue.take({ ...take, budgetBytes });
            const bytes = riders.reduce((sum, update) => sum + updateBytesMax(update), 0);
            expect(bytes).toBeLessThanOrEqual(budgetBytes);
            for (const rider of riders) sends.set(keyOf(rider), (sends.get(keyOf(rider)) ?? 0) + 1);
            if (riders.length === 0) break;
          }
          for (const key of sends.keys()) expect(sends.get(key)).toBeLessThanOrEqual(4);
          const last = new Map(updates.map((update) => [keyOf(update), update]));
          for (const key of wanted) {
            const update = last.get(key);
            if (update !== undefined && updateBytesMax(update) <= budgetBytes)
              expect(sends.get(key)).toBe(4);
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
