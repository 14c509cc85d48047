import { describe, expect, it } from "vitest";
import { incarnationOf } from "../incarnation.ts";
import { spread } from "./free-cores.ts";
import { WorkerTable } from "./worker-table.ts";

const CONFIG = { workerTimeoutMs: 3_000, lostWorkerMs: 900_000, queuedPerCoreMax: 50 };
const HEARTBEAT = {
  ...({ kind: "heartbeat", worker: "w1", incarnation: 1, cores: 4, version: "1.0.0" } as const),
  draining: false,
};

function seenAtZero(): WorkerTable {
  const table = new WorkerTable(CONFIG);
  table.onHeartbeat(HEARTBEAT, 0);
  return table;
}

const lostAt = (table: WorkerTable, now: number): boolean => table.takeFailed(now).lost.length > 0;

describe("a silent worker", () => {
  it("is lost after its timeout", () => {
    const table = seenAtZero();
    expect(table.nextDeadline()).toBe(3_000);
    expect([lostAt(table, 2_999), lostAt(table, 3_000)]).toEqual([false, true]);
  });

  it("has terminated when it closed its connection mid-stream, and otherwise may be alive", () => {
    const life = { worker: "w1", incarnation: 1 };
    for (const [closedAt, overAt] of [
      [200, 200],
      [2_900, null],
    ] as const) {
      const table = seenAtZero();
      expect(table.overAt(life)).toBeNull();
      table.onClosed("w1", closedAt);
      expect(table.overAt(life)).toBe(overAt);
      table.onHeard("w1", 1, 3_000);
      expect(table.overAt(life)).toBeNull();
      table.onHeartbeat({ ...HEARTBEAT, incarnation: 2 }, 4_000);
      expect(table.overAt(life)).toBe(4_000);
      table.onHeartbeat({ ...HEARTBEAT, incarnation: 2 }, 5_000);
      expect(table.overAt(life)).toBe(4_000);
    }
  });

  it("has terminated when its name comes back from an empty data directory", () => {
    const table = new WorkerTable(CONFIG);
    const [former, fresh] = [incarnationOf(3, 5), incarnationOf(1, 4)];
    table.onHeartbeat({ ...HEARTBEAT, incarnation: former }, 0);
    expect(table.onHeartbeat({ ...HEARTBEAT, incarnation: fresh }, 1_000)).toBe("new");
    expect([table.isAlive("w1", former), table.isAlive("w1", fresh)]).toEqual([false, true]);
    expect(table.overAt({ worker: "w1", incarnation: former })).toBe(1_000);
    expect(table.onHeartbeat({ ...HEARTBEAT, incarnation: fresh }, 1_500)).toBe("known");
    expect(table.replacedBy("w1")).toBe(former);
  });

  it("may be alive when it closed its connection after only repeating itself", () => {
    const table = seenAtZero();
    const life = { worker: "w1", incarnation: 1 };
    table.onHeard("w1", 1, 3_000);
    table.onClosed("w1", 3_200);
    expect([table.overAt(life), table.overAt(life, 2_900)]).toEqual([3_200, 3_200]);
    expect(table.overAt(life, 1_000)).toBeNull();
  });

  it("gets more time while the manager itself is late, since its messages may be unread", () => {
    const table = seenAtZero();
    table.onLate(500, 1_000);
    expect(table.nextDeadline()).toBe(5_000);
    expect([lostAt(table, 4_999), lostAt(table, 5_000)]).toEqual([false, true]);
  });

  it("gets the longest lateness of the last 10 s, whatever is measured in between", () => {
    const table = seenAtZero();
    table.onLate(500, 0);
    table.onLate(0, 9_999);
    expect(table.nextDeadline()).toBe(5_000);
    table.onLate(0, 10_000);
    expect(table.nextDeadline()).toBe(3_000);
  });

  it("is lost after 30 s, however late the manager is", () => {
    const table = seenAtZero();
    table.onLate(1_000_000, 0);
    expect([lostAt(table, 29_999), lostAt(table, 30_000)]).toEqual([false, true]);
  });
});

describe("a worker that is assigned work", () => {
  it("accepts work, is not draining and has capacity (AD-19.11)", () => {
    for (const accepting of [true, false])
      for (const draining of [true, false])
        for (const queued of [0, 199, 200, 999]) {
          const table = new WorkerTable(CONFIG);
          table.onHeartbeat({ ...HEARTBEAT, accepting, draining, queued }, 0);
          const ready = accepting && !draining && queued < 4 * CONFIG.queuedPerCoreMax;
          expect([accepting, draining, queued, table.decisionOf("w1")]).toEqual([
            ...[accepting, draining, queued],
            ready ? "route" : "drain",
          ]);
          expect([table.isOpen("w1"), table.available().length]).toEqual([ready, Number(ready)]);
        }
  });

  it.each([
    [0, "healthy"],
    [3, "healthy"],
    [4, "busy"],
  ])("with %i of 4 cores in use is %s (AD-19.11)", (used, health) => {
    expect(seenAtZero().views(() => used)).toMatchObject([{ coresUsed: used, health }]);
  });

  /** Two workers that advanced by 10 a second; since then the first advances by `perSecond`. */
  function slowed(perSecond: number): WorkerTable {
    const table = new WorkerTable(CONFIG);
    const advances = [0, 0];
    for (let at = 0; at <= 80_000; at += 500)
      for (const [index, worker] of ["w0", "w1"].entries()) {
        const rate = index === 0 && at > 60_000 ? perSecond : 10;
        const advance = (advances[index] ?? 0) + rate / 2;
        advances[index] = advance;
        const heartbeat = { ...HEARTBEAT, worker, running: 1, advance };
        table.onHeartbeat(heartbeat, at);
        table.onWork(heartbeat, at);
      }
    return table;
  }

  it.each([
    // As fast as before, it gets its half; slower, it gets what the other has no capacity for.
    [10, 4, [2, 2]],
    [5, 4, [0, 4]],
    [1, 4, [0, 4]],
    [5, 6, [2, 4]],
    [5, 99, [4, 4]],
    // Standing still, it gets nothing.
    [0, 99, [0, 4]],
  ])("at %i instead of 10 a second, of %i cores: %j (AD-19.8)", (perSecond, wanted, given) => {
    const workers = slowed(perSecond)
      .available()
      .map(({ cores, ...one }) => ({ ...one, capacity: cores, free: cores }));
    const grants = spread(workers, wanted);
    const coresOf = (name: string) => grants.find(({ worker }) => worker === name)?.cores ?? 0;
    expect([coresOf("w0"), coresOf("w1")]).toEqual(given);
  });
});

describe("BP-4: the queue of a worker", () => {
  function table(...queued: number[]): WorkerTable {
    const made = new WorkerTable(CONFIG);
    for (const [at, one] of queued.entries())
      made.onHeartbeat({ ...HEARTBEAT, worker: `w${at}`, cores: 1, queued: one }, 0);
    return made;
  }
  const open = (made: WorkerTable) =>
    made.available().map(({ isSlow, worker }) => [worker, isSlow] as const);

  it("at 50, 48 and 50 with a limit of 50 leaves only the second eligible", () => {
    expect(open(table(50, 48, 50))).toEqual([["w1", true]]);
    expect(table(50, 48, 50).isFull).toBe(false);
  });

  it("ranks workers near the limit behind the others, from 45 on", () => {
    expect(open(table(44, 45, 0))).toEqual([
      ["w0", false],
      ["w1", true],
      ["w2", false],
    ]);
  });

  it("is limited per core of the worker", () => {
    const made = new WorkerTable(CONFIG);
    made.onHeartbeat({ ...HEARTBEAT, queued: 199 }, 0);
    expect(made.isOpen("w1")).toBe(true);
    made.onHeartbeat({ ...HEARTBEAT, queued: 200 }, 0);
    expect([made.isOpen("w1"), made.isFull]).toEqual([false, true]);
  });

  it("BP-5: full on all workers makes the datacenter full, unless there are none", () => {
    expect([table(50, 51, 90).isFull, table().isFull]).toEqual([true, false]);
  });

  it("BP-6: gives no work to an overloaded worker, and does not declare it lost", () => {
    const made = new WorkerTable(CONFIG);
    made.onHeartbeat({ ...HEARTBEAT, accepting: false }, 0);
    expect([made.isOpen("w1"), made.isFull, made.isAlive("w1", 1)]).toEqual([false, true, true]);
    made.onHeartbeat({ ...HEARTBEAT, accepting: true }, 0);
    expect([made.isOpen("w1"), made.isFull]).toEqual([true, false]);
  });
});
