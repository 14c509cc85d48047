/**
 * Coalesced statistics: from ten thousand progress records a second to two messages per job. (STAT-1 to STAT-6)
 *
 *     worker ── 100 ms or 1,000 records ──> manager ── one aggregate per job and 500 ms ──> gate (1 hour kept)
 *
 * Counts are exact and live as long as the job, told apart by workflow; latencies are histograms, merged
 * exactly; detail (samples, then latencies) is what goes first under pressure. Nothing here waits, and
 * nothing syncs.
 *
 * A record with a latency is one request; a record that says failed is one error.
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { cellMiddle, Histogram } from "../../run/stats/histogram.ts";
import type { StatsConfig } from "./config.ts";
import type { JobId } from "./job-id.ts";

export type WorkflowStatus = "running" | "completed" | "failed";

export interface ProgressRecord {
  readonly workflowId: string;
  readonly status: WorkflowStatus;
  readonly latencyMs?: number;
  readonly cpuPercent?: number;
  readonly memoryMb?: number;
  readonly timestamp: number;
}

/** What one worker saw of one job since its last batch. */
export interface JobBatch {
  readonly jobId: JobId;
  events: number;
  requests: number;
  errors: number;
  /** Microseconds. */
  readonly latency: Histogram;
  /** The newest status of each workflow; an end stays an end. */
  readonly workflows: Map<string, WorkflowStatus>;
  readonly cpuPercent: Mean;
  readonly memoryMb: Mean;
  readonly samples: ProgressRecord[];
}

interface Mean {
  sum: number;
  count: number;
}

/** The levels of backpressure; each drops more detail than the one before. (AD-37) */
export type Pressure = "NONE" | "THROTTLE" | "BATCH" | "REJECT";

const MICROS_PER_MILLI = 1_000;

export class WorkerStats {
  readonly #config: StatsConfig;
  #jobs = new Map<JobId, JobBatch>();
  #events = 0;
  #flushAt: number | null = null;
  #sampleDebt = 0;

  constructor(config: StatsConfig) {
    this.#config = config;
  }

  nextDeadline(): Millis | null {
    return this.#flushAt as Millis | null;
  }

  /** Takes a record in; gives the batches when it was the thousandth. */
  record(jobId: JobId, record: ProgressRecord, now: Millis): readonly JobBatch[] {
    const batch = this.#jobs.get(jobId) ?? emptyBatch(jobId);
    this.#jobs.set(jobId, batch);
    addRecord(batch, record);
    if (this.#isSampled()) batch.samples.push(record);
    this.#flushAt ??= now + this.#config.workerBatchIntervalMs;
    this.#events++;
    return this.#events >= this.#config.workerBatchEventsMax ? this.flush() : [];
  }

  tick(now: Millis): readonly JobBatch[] {
    return this.#flushAt !== null && now >= this.#flushAt ? this.flush() : [];
  }

  /** What is there, at once; also the last thing to do before stopping. (STAT-5) */
  flush(): readonly JobBatch[] {
    const batches = [...this.#jobs.values()];
    this.#jobs = new Map();
    this.#events = 0;
    this.#flushAt = null;
    return batches;
  }

  /** Every tenth record at a rate of 0.1: even, and the same in every run. (STAT-4) */
  #isSampled(): boolean {
    this.#sampleDebt += this.#config.managerSampleRate;
    if (this.#sampleDebt < 1 - 1e-9) return false;
    this.#sampleDebt -= 1;
    return true;
  }
}

function emptyBatch(jobId: JobId): JobBatch {
  return {
    jobId,
    events: 0,
    requests: 0,
    errors: 0,
    latency: new Histogram(),
    workflows: new Map(),
    cpuPercent: { sum: 0, count: 0 },
    memoryMb: { sum: 0, count: 0 },
    samples: [],
  };
}

function addRecord(batch: JobBatch, record: ProgressRecord): void {
  batch.events++;
  if (record.status === "failed") batch.errors++;
  if (record.latencyMs !== undefined) {
    batch.requests++;
    batch.latency.record(record.latencyMs * MICROS_PER_MILLI);
  }
  addToMean(batch.cpuPercent, record.cpuPercent);
  addToMean(batch.memoryMb, record.memoryMb);
  const known = batch.workflows.get(record.workflowId) ?? "running";
  if (known === "running") batch.workflows.set(record.workflowId, record.status);
}

function addToMean(mean: Mean, value: number | undefined): void {
  if (value === undefined) return;
  mean.sum += value;
  mean.count++;
}

export interface AggregatedJobStats {
  readonly jobId: JobId;
  readonly dcId: string;
  readonly timestamp: number;
  readonly workflowsRunning: number;
  readonly workflowsCompleted: number;
  readonly workflowsFailed: number;
  readonly requestsPerSecond: number;
  readonly errorsPerSecond: number;
  /** Null: nothing was measured in the window, or pressure dropped it. */
  readonly latencyP50Ms: number | null;
  readonly latencyP95Ms: number | null;
  readonly latencyP99Ms: number | null;
  readonly cpuPercentAvg: number | null;
  readonly memoryMbAvg: number | null;
}

export interface ManagerReport {
  readonly stats: AggregatedJobStats;
  readonly samples: readonly ProgressRecord[];
}

interface JobTotals {
  readonly jobId: JobId;
  readonly workflows: Map<string, WorkflowStatus>;
  running: number;
  completed: number;
  failed: number;
}

/** What changed in a job since its last aggregate. */
interface Window {
  readonly totals: JobTotals;
  readonly since: number;
  readonly batch: JobBatch;
}

export class ManagerStats {
  readonly #dcId: string;
  readonly #config: StatsConfig;
  readonly #jobs = new Map<JobId, JobTotals>();
  /** Jobs with a window under way, the oldest window first: time only rises, so insertion is order. */
  readonly #changed = new Map<JobId, Window>();
  #pressure: Pressure = "NONE";
  #refused = 0;

  constructor(dcId: string, config: StatsConfig) {
    this.#dcId = dcId;
    this.#config = config;
  }

  /** Batches of jobs beyond the bound. */
  get refused(): number {
    return this.#refused;
  }

  get jobs(): number {
    return this.#jobs.size;
  }

  setPressure(pressure: Pressure): void {
    this.#pressure = pressure;
  }

  nextDeadline(): Millis | null {
    for (const { since } of this.#changed.values()) {
      return (since + this.#config.managerAggregateIntervalMs) as Millis;
    }
    return null;
  }

  add(batch: JobBatch, now: Millis): void {
    const totals = this.#jobs.get(batch.jobId) ?? this.#open(batch.jobId);
    if (totals === null) {
      this.#refused++;
      return;
    }
    for (const [workflowId, status] of batch.workflows) this.#count(totals, workflowId, status);
    const window = this.#changed.get(batch.jobId) ?? {
      totals,
      since: now,
      batch: emptyBatch(batch.jobId),
    };
    this.#changed.set(batch.jobId, window);
    this.#merge(window.batch, batch);
  }

  #open(jobId: JobId): JobTotals | null {
    if (this.#jobs.size >= this.#config.jobsMax) return null;
    const workflows = new Map<string, WorkflowStatus>();
    const totals: JobTotals = { jobId, workflows, running: 0, completed: 0, failed: 0 };
    this.#jobs.set(jobId, totals);
    return totals;
  }

  /** Each workflow counts once in each state it is in. (STAT-3) */
  #count(totals: JobTotals, workflowId: string, status: WorkflowStatus): void {
    const known = totals.workflows.get(workflowId);
    if (known === status || (known !== undefined && known !== "running")) return;
    const isNew = known === undefined;
    const isTracked = !isNew || totals.workflows.size < this.#config.workflowsPerJobMax;
    // Untracked ones are counted when they end; while they run nothing would ever take them off again.
    if (!isTracked && status === "running") return;
    if (isTracked) totals.workflows.set(workflowId, status);
    if (!isNew) totals.running--;
    totals[status]++;
    assert(totals.running >= 0, "no more workflows stop running than ran");
  }

  /** Counts always; detail as far as the pressure allows: samples go first, then latencies. (STAT-6) */
  #merge(into: JobBatch, batch: JobBatch): void {
    into.events += batch.events;
    into.requests += batch.requests;
    into.errors += batch.errors;
    if (this.#pressure === "NONE" || this.#pressure === "THROTTLE") {
      into.latency.merge(batch.latency);
      addMean(into.cpuPercent, batch.cpuPercent);
      addMean(into.memoryMb, batch.memoryMb);
    }
    if (this.#pressure !== "NONE") return;
    const room = this.#config.samplesMax - into.samples.length;
    into.samples.push(...batch.samples.slice(0, Math.max(0, room)));
  }

  /** One aggregate for each job in whose window something changed and whose time has come. (STAT-1) */
  tick(now: Millis): readonly ManagerReport[] {
    return this.#flush(now, now - this.#config.managerAggregateIntervalMs);
  }

  /** The last flush: everything that is open. (STAT-5) */
  stop(now: Millis): readonly ManagerReport[] {
    return this.#flush(now, now);
  }

  jobEnded(jobId: JobId, now: Millis): readonly ManagerReport[] {
    const window = this.#changed.get(jobId);
    this.#jobs.delete(jobId);
    this.#changed.delete(jobId);
    return window === undefined ? [] : [this.#report(window, now)];
  }

  #flush(now: Millis, sinceMax: number): ManagerReport[] {
    const reports: ManagerReport[] = [];
    for (const [jobId, window] of this.#changed) {
      if (window.since > sinceMax) break;
      reports.push(this.#report(window, now));
      this.#changed.delete(jobId);
    }
    return reports;
  }

  #report({ batch, since, totals }: Window, now: Millis): ManagerReport {
    const { completed, failed, jobId, running } = totals;
    // A window closed early (stop) still covers the time of at least one worker batch.
    const seconds = Math.max(now - since, this.#config.workerBatchIntervalMs) / 1_000;
    return {
      stats: {
        jobId,
        dcId: this.#dcId,
        timestamp: now,
        workflowsRunning: running,
        workflowsCompleted: completed,
        workflowsFailed: failed,
        requestsPerSecond: batch.requests / seconds,
        errorsPerSecond: batch.errors / seconds,
        latencyP50Ms: percentileMs(batch.latency, 0.5),
        latencyP95Ms: percentileMs(batch.latency, 0.95),
        latencyP99Ms: percentileMs(batch.latency, 0.99),
        cpuPercentAvg: meanOf(batch.cpuPercent),
        memoryMbAvg: meanOf(batch.memoryMb),
      },
      samples: batch.samples,
    };
  }
}

function addMean(into: Mean, other: Mean): void {
  into.sum += other.sum;
  into.count += other.count;
}

function meanOf({ count, sum }: Mean): number | null {
  return count === 0 ? null : sum / count;
}

/** The sample at index floor(count x q) of the sorted ones, to the precision of the histogram. (STAT-2) */
export function percentileMs(latency: Histogram, q: number): number | null {
  if (latency.count === 0) return null;
  const index = Math.min(Math.floor(latency.count * q), latency.count - 1);
  let seen = 0;
  let found: number | null = null;
  latency.forEachCell((cell, count) => {
    seen += count;
    if (found === null && seen > index) found = cellMiddle(cell);
  });
  assert(found !== null, "an index lies inside the counts");
  const micros = Math.min(Math.max(found, latency.min), latency.max);
  return micros / MICROS_PER_MILLI;
}
