import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { Histogram } from "../../run/stats/histogram.ts";
import { LEDGER_DEFAULTS } from "./config.ts";
import { GateStats } from "./gate-stats.ts";
import {
  type AggregatedJobStats,
  type JobBatch,
  type ManagerReport,
  ManagerStats,
  type ProgressRecord,
  percentileMs,
  WorkerStats,
} from "./stats.ts";
import { JOB } from "./testing/events.ts";

const config = LEDGER_DEFAULTS.stats;

function record(workflowId: string, changes: Partial<ProgressRecord> = {}): ProgressRecord {
  return { workflowId, status: "running", timestamp: 0, ...changes };
}

function batchOf(...records: readonly ProgressRecord[]): JobBatch {
  const worker = new WorkerStats(config);
  for (const one of records) worker.record(JOB, one, millis(0));
  return worker.flush()[0] as JobBatch;
}

const statsOf = (reports: readonly ManagerReport[]): AggregatedJobStats => {
  const [report] = reports;
  if (report === undefined) throw new Error("no report");
  return report.stats;
};

describe("a worker's batches", () => {
  it("leave after 100 ms or with the thousandth record, whichever is first (STAT-1)", () => {
    const worker = new WorkerStats(config);
    expect(worker.record(JOB, record("a"), millis(10))).toEqual([]);
    expect(worker.nextDeadline()).toBe(110);
    expect(worker.tick(millis(109))).toEqual([]);
    expect(worker.tick(millis(110))).toMatchObject([{ events: 1 }]);
    expect(worker.nextDeadline()).toBeNull();
    for (let at = 0; at < 999; at++) worker.record(JOB, record("a"), millis(200));
    expect(worker.record(JOB, record("a"), millis(200))).toMatchObject([{ events: 1_000 }]);
    expect(worker.flush()).toEqual([]);
  });

  it("carry exact counts and a tenth of the records as samples (STAT-4)", () => {
    const records = Array.from({ length: 500 }, (_, at) => record(`w${at}`, { latencyMs: 2 }));
    const batch = batchOf(...records, record("x", { status: "failed" }));
    expect(batch).toMatchObject({ events: 501, requests: 500, errors: 1 });
    expect(batch.samples).toHaveLength(50);
    expect(batch.latency.count).toBe(500);
  });
});

describe("a manager's aggregates", () => {
  it("come once per job and 500 ms in which something changed", () => {
    const manager = new ManagerStats("dc1", config);
    expect(manager.nextDeadline()).toBeNull();
    for (const at of [0, 100, 200, 450]) manager.add(batchOf(record("a")), millis(at));
    expect(manager.tick(millis(499))).toEqual([]);
    expect(manager.tick(millis(500))).toHaveLength(1);
    expect(manager.tick(millis(1_500))).toEqual([]);
  });

  it("keep workflows across windows, told apart by their ids (STAT-3)", () => {
    const manager = new ManagerStats("dc1", config);
    manager.add(batchOf(record("a"), record("b"), record("c")), millis(0));
    expect(statsOf(manager.tick(millis(500)))).toMatchObject({
      workflowsRunning: 3,
      workflowsCompleted: 0,
      workflowsFailed: 0,
    });
    const done = batchOf(
      record("a", { status: "completed" }),
      record("b", { status: "failed" }),
      record("a"),
    );
    manager.add(done, millis(600));
    manager.add(done, millis(650));
    // A late word of a workflow that has ended.
    manager.add(batchOf(record("a"), record("b", { status: "completed" })), millis(700));
    expect(statsOf(manager.tick(millis(1_100)))).toMatchObject({
      workflowsRunning: 1,
      workflowsCompleted: 1,
      workflowsFailed: 1,
    });
  });

  it("give rates per second of the window, and means of what was told", () => {
    const manager = new ManagerStats("dc1", config);
    const records = Array.from({ length: 100 }, (_, at) =>
      record(`w${at}`, { latencyMs: 5, cpuPercent: at, memoryMb: 64 }),
    );
    manager.add(batchOf(...records, record("f", { status: "failed" })), millis(0));
    expect(statsOf(manager.tick(millis(500)))).toMatchObject({
      requestsPerSecond: 200,
      errorsPerSecond: 2,
      cpuPercentAvg: 49.5,
      memoryMbAvg: 64,
      latencyP50Ms: 5,
    });
    manager.add(batchOf(record("w1")), millis(600));
    expect(statsOf(manager.stop(millis(700)))).toMatchObject({
      requestsPerSecond: 0,
      latencyP50Ms: null,
      cpuPercentAvg: null,
    });
  });

  it("lose detail under pressure, and never a count (STAT-6)", () => {
    const seen = (["NONE", "THROTTLE", "BATCH", "REJECT"] as const).map((pressure) => {
      const manager = new ManagerStats("dc1", config);
      manager.setPressure(pressure);
      const records = Array.from({ length: 20 }, (_, at) =>
        record(`w${at}`, { status: "completed", latencyMs: 3 }),
      );
      manager.add(batchOf(...records), millis(0));
      const [report] = manager.tick(millis(500));
      const { latencyP50Ms, requestsPerSecond, workflowsCompleted } = statsOf([
        report as ManagerReport,
      ]);
      const samples = report?.samples.length;
      return [workflowsCompleted, requestsPerSecond, latencyP50Ms, samples];
    });
    expect(seen).toEqual([
      [20, 40, 3, 2],
      [20, 40, 3, 0],
      [20, 40, null, 0],
      [20, 40, null, 0],
    ]);
  });

  it("are flushed a last time when the job ends, which frees its memory", () => {
    const manager = new ManagerStats("dc1", config);
    manager.add(batchOf(record("a", { status: "completed" })), millis(0));
    expect(statsOf(manager.jobEnded(JOB, millis(50)))).toMatchObject({ workflowsCompleted: 1 });
    expect([manager.jobs, manager.nextDeadline()]).toEqual([0, null]);
  });

  it("count exactly also beyond the workflows that are told apart, and bound the jobs", () => {
    const manager = new ManagerStats("dc1", { ...config, workflowsPerJobMax: 2, jobsMax: 1 });
    for (const id of ["a", "b", "c", "d"]) {
      manager.add(batchOf(record(id)), millis(0));
      manager.add(batchOf(record(id, { status: "completed" })), millis(0));
    }
    const other = { ...batchOf(record("x")), jobId: "use1-2-g-00001" as typeof JOB };
    manager.add(other, millis(0));
    expect(manager.refused).toBe(1);
    expect(statsOf(manager.stop(millis(1)))).toMatchObject({
      workflowsRunning: 0,
      workflowsCompleted: 4,
    });
  });
});

describe("percentiles", () => {
  it("are the sample at floor(count x q) of the sorted ones (STAT-2)", () => {
    const samples = fc.array(fc.nat(2_000), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(samples, fc.constantFrom(0.5, 0.95, 0.99), (values, q) => {
        const histogram = new Histogram();
        for (const value of values) histogram.record(value);
        const sorted = [...values].sort((a, b) => a - b);
        // Below 2,048 a cell holds one value, so the histogram is exact.
        const at = Math.floor(sorted.length * q);
        expect(percentileMs(histogram, q)).toBe((sorted[at] ?? 0) / 1_000);
      }),
    );
    expect(percentileMs(new Histogram(), 0.5)).toBeNull();
  });
});

describe("the whole way", () => {
  it("10,000 records a second for 10 s give at most 2 messages a second and exact totals", () => {
    const workers = Array.from({ length: 10 }, () => new WorkerStats(config));
    const manager = new ManagerStats("dc1", config);
    const gate = new GateStats(config);
    let batches = 0;
    let messages = 0;
    const send = (sent: readonly JobBatch[], now: number): void => {
      for (const batch of sent) manager.add(batch, millis(now));
      batches += sent.length;
    };
    const report = (reports: readonly ManagerReport[], now: number): void => {
      for (const { stats } of reports) gate.add(stats, now);
      messages += reports.length;
    };
    let made = 0;
    for (let now = 0; now < 10_000; now++) {
      for (const worker of workers) {
        send(worker.tick(millis(now)), now);
        const status = made % 50 === 0 ? "failed" : "completed";
        send(worker.record(JOB, record(`w${made++}`, { status, latencyMs: 1 }), millis(now)), now);
      }
      report(manager.tick(millis(now)), now);
    }
    for (const worker of workers) send(worker.flush(), 10_000);
    report(manager.stop(millis(10_000)), 10_000);
    expect(made).toBe(100_000);
    expect(batches).toBeLessThanOrEqual(1_000);
    expect(messages).toBeLessThanOrEqual(20);
    expect(gate.latest(JOB)).toMatchObject([
      { workflowsRunning: 0, workflowsCompleted: 98_000, workflowsFailed: 2_000 },
    ]);
  });
});

describe("a gate", () => {
  const row = (dcId: string, timestamp: number): AggregatedJobStats => ({
    ...statsOf(filled().stop(millis(500))),
    dcId,
    timestamp,
  });
  const filled = (): ManagerStats => {
    const manager = new ManagerStats("dc1", config);
    manager.add(batchOf(record("a")), millis(0));
    return manager;
  };

  it("keeps an hour per job and datacenter and logs what comes", () => {
    const gate = new GateStats(config);
    expect(gate.add(row("dc1", 1), 0)).toMatchObject([
      { kind: "log", path: "hyperscale.stats.log.json" },
    ]);
    gate.add(row("dc2", 2), 1_000);
    gate.add(row("dc1", 3), 2_000);
    expect(gate.latest(JOB).map(({ dcId, timestamp }) => [dcId, timestamp])).toEqual([
      ["dc1", 3],
      ["dc2", 2],
    ]);
    expect(gate.history(JOB, 500, 2_000)).toHaveLength(2);
    gate.prune(3_600_001);
    expect(gate.sizes).toEqual({ jobs: 1, rows: 2 });
    gate.prune(3_700_000);
    expect(gate.sizes).toEqual({ jobs: 0, rows: 0 });
  });

  it("without the logger writes nothing, and bounds its jobs", () => {
    const gate = new GateStats({ ...config, gateStatsUseLogger: false, jobsMax: 1 });
    expect(gate.add(row("dc1", 1), 0)).toEqual([]);
    gate.add({ ...row("dc1", 1), jobId: "use1-2-g-00001" as typeof JOB }, 0);
    expect(gate.sizes.jobs).toBe(1);
  });
});
