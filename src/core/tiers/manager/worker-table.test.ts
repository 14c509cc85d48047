import { describe, expect, it } from "vitest";
import { WorkerTable } from "./worker-table.ts";

const CONFIG = { workerTimeoutMs: 3_000, lostWorkerMs: 900_000 };
const HEARTBEAT = {
  ...({ kind: "heartbeat", worker: "w1", incarnation: 1, cores: 4, version: "1.0.0" } as const),
  draining: false,
};

function heardAtZero(): WorkerTable {
  const table = new WorkerTable(CONFIG);
  table.onHeartbeat(HEARTBEAT, 0);
  return table;
}

const lostAt = (table: WorkerTable, now: number): boolean => table.takeFailed(now).lost.length > 0;

describe("a worker that is silent", () => {
  it("is lost when its time is over", () => {
    const table = heardAtZero();
    expect(table.nextDeadline()).toBe(3_000);
    expect([lostAt(table, 2_999), lostAt(table, 3_000)]).toEqual([false, true]);
  });

  it("has longer while the manager itself is late: its words may wait to be read", () => {
    const table = heardAtZero();
    table.onLate(500, 1_000);
    expect(table.nextDeadline()).toBe(5_000);
    expect([lostAt(table, 4_999), lostAt(table, 5_000)]).toEqual([false, true]);
  });

  it("has the longest of the last 10 s, whatever is measured in between", () => {
    const table = heardAtZero();
    table.onLate(500, 0);
    table.onLate(0, 9_999);
    expect(table.nextDeadline()).toBe(5_000);
    table.onLate(0, 10_000);
    expect(table.nextDeadline()).toBe(3_000);
  });

  it("is lost after 30 s, however late the manager is", () => {
    const table = heardAtZero();
    table.onLate(1_000_000, 0);
    expect([lostAt(table, 29_999), lostAt(table, 30_000)]).toEqual([false, true]);
  });
});
