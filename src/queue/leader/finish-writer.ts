/**
 * The leader's finish writer: first final results under valid leases, retries, renewals, returned work. A report that
 * the database rejects is either a repeat of an accepted one (whose answer was lost) or late; late ones are recorded
 * and change nothing. (TQ-21, TQ-32)
 */

import { performance } from "node:perf_hooks";
import type { Random } from "../../core/base/random.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { type Backoff, type RetryPolicy, retryDelayMs } from "../../core/queue/retry.ts";
import type { TaskState } from "../../core/queue/states.ts";
import type { LeaseRef, Report } from "../api/types.ts";
import { sqlArray, sqlColumn } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { GroupCommit } from "../store/group-commit.ts";
import type { LeaderMemory, Lease } from "./memory.ts";
import type { QueueMetrics } from "./metrics.ts";

interface FinishOperation {
  readonly nodeId: string;
  readonly reports: readonly Report[];
  readonly resolve: (refused: readonly string[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Why a running task is requeued: its failure or snooze; its holder's stop, exit, or silence for a whole lease; or its
 * grant never arrived.
 */
type RequeueReason = "failed" | "snoozed" | "released" | "lost" | "expired" | "undelivered";

interface Requeue extends LeaseRef {
  readonly reason: RequeueReason;
  readonly delayMs: number;
  /** A time instead of a delay. */
  readonly againAt?: string | undefined;
  readonly error: string | null;
}

interface Moved {
  readonly id: number;
  readonly state: TaskState;
  readonly attempt: number;
  readonly ready: boolean;
}

interface FinishWriterOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly metrics: QueueMetrics;
  readonly taskLeaseMs: number;
  readonly retry: RetryPolicy;
  readonly random: Random;
  readonly onReady: () => void;
  readonly onFinished: (ids: readonly number[]) => void;
  /** A retry is due in this many milliseconds. */
  readonly onDelayed: (delayMs: number) => void;
}

export class FinishWriter {
  readonly #options: FinishWriterOptions;
  readonly #commit: GroupCommit<FinishOperation>;

  constructor(options: FinishWriterOptions) {
    this.#options = options;
    this.#commit = new GroupCommit({
      write: (batch) => this.#write(batch),
      weigh: (operation) => operation.reports.length,
      batchMax: QUEUE_LIMITS.commitTasksMax,
      pendingMax: QUEUE_LIMITS.pendingOperationsMax,
      background: options.writer.background,
    });
  }

  /** Stores reports; returns the rejected tokens. */
  async report(nodeId: string, reports: readonly Report[]): Promise<readonly string[]> {
    const again = reports.filter(
      (report) => report.status === "failed" && report.error?.retryable !== false,
    );
    const final =
      again.length === 0 ? reports : reports.filter((report) => !again.includes(report));
    const [refused, refusedAgain] = await Promise.all([
      this.#finish(nodeId, final),
      this.#retry(nodeId, again),
    ]);
    return refusedAgain.length === 0 ? refused : [...refused, ...refusedAgain];
  }

  async started(leases: readonly LeaseRef[]): Promise<void> {
    const known = leases.filter(({ lease_token: token }) => this.#options.memory.leases.has(token));
    if (known.length === 0) return;
    await this.#options.writer.write("finish", "started", [
      sqlArray(known.map((lease) => lease.task_id)),
      sqlArray(known.map((lease) => lease.lease_token)),
    ]);
    for (const { lease_token: token } of known) {
      const lease = this.#options.memory.leases.get(token);
      if (lease === undefined) continue;
      this.#options.memory.notify({
        taskId: lease.taskId,
        eventType: "started",
        from: "RUNNING",
        to: "RUNNING",
        nodeId: lease.nodeId,
        attempt: lease.attempt,
      });
    }
  }

  /** Extends leases; returns the tokens that are lost. */
  async renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]> {
    if (leases.length === 0) return [];
    const { memory, taskLeaseMs } = this.#options;
    const known = leases.flatMap((ref) => memory.leases.get(ref.lease_token) ?? []);
    for (const lease of known) lease.renewing++;
    let lost: readonly LeaseRef[];
    try {
      const renewed = await this.#extend(leases);
      lost = leases.filter(({ task_id: id }) => !renewed.has(id));
      const expiresAt = performance.now() + taskLeaseMs;
      for (const lease of known) if (renewed.has(String(lease.taskId))) lease.expiresAt = expiresAt;
    } finally {
      for (const lease of known) lease.renewing--;
    }
    if (lost.length > 0) await this.#note("lease_renewal_failed", nodeId, lost);
    return lost.map((ref) => ref.lease_token);
  }

  async #extend(leases: readonly LeaseRef[]): Promise<ReadonlySet<string>> {
    const { row } = await this.#options.writer.write("finish", "renew", [
      sqlArray(leases.map((lease) => lease.task_id)),
      sqlArray(leases.map((lease) => lease.lease_token)),
      this.#options.taskLeaseMs,
    ]);
    return new Set((row["renewed"] as readonly unknown[]).map(String));
  }

  /** Returns running tasks to the queue; returns those it moved. */
  async requeue(requeues: readonly Requeue[]): Promise<readonly Moved[]> {
    if (requeues.length === 0) return [];
    const { writer } = this.#options;
    const { row, repeated } = await writer.write("finish", "requeue", [
      sqlArray(requeues.map((one) => one.task_id)),
      sqlArray(requeues.map((one) => one.lease_token)),
      sqlArray(requeues.map((one) => one.reason)),
      sqlArray(requeues.map((one) => one.delayMs)),
      sqlArray(requeues.map((one) => one.error)),
      sqlArray(requeues.map((one) => one.againAt)),
      QUEUE_LIMITS.snoozesMax,
    ]);
    const moved = row["moved"] as readonly Moved[];
    const byId = new Map(moved.map((one) => [one.id, one]));
    for (const one of requeues) {
      const outcome = byId.get(Number(one.task_id));
      if (outcome !== undefined) this.#moveOn(one, outcome);
      else if (repeated) this.#reopen(one.lease_token);
    }
    const finished = moved.filter(({ state }) => state === "FAILED").map(({ id }) => id);
    if (finished.length > 0) this.#options.onFinished(finished);
    this.#options.onReady();
    return moved;
  }

  #moveOn(one: Requeue, outcome: Moved): void {
    const { memory, metrics } = this.#options;
    const lease = memory.dropLease(one.lease_token);
    const failed = outcome.state === "FAILED" || one.reason === "failed";
    memory.moved({
      taskId: outcome.id,
      eventType: failed ? "failed" : "reassigned",
      from: "RUNNING",
      to: outcome.state,
      nodeId: lease?.nodeId ?? null,
      attempt: lease?.attempt ?? outcome.attempt,
    });
    if (outcome.state === "FAILED") return;
    metrics.retries++;
    if (!outcome.ready) {
      this.#options.onDelayed(one.delayMs);
    } else if (lease?.task !== undefined) {
      memory.lanes.add(lease.lane, {
        ...lease.task,
        attempt: outcome.attempt,
        readyAt: performance.now(),
      });
    } else if (lease !== undefined) {
      memory.lanes.reopen(lease.lane, lease.priority);
    }
  }

  #reopen(token: string): void {
    const lease = this.#options.memory.dropLease(token);
    if (lease !== undefined) this.#options.memory.lanes.reopen(lease.lane, lease.priority);
  }

  #finish(nodeId: string, reports: readonly Report[]): Promise<readonly string[]> {
    if (reports.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => this.#commit.add({ nodeId, reports, resolve, reject }));
  }

  async #retry(nodeId: string, reports: readonly Report[]): Promise<readonly string[]> {
    if (reports.length === 0) return [];
    const notNoted = reports.filter((report) => !report.start_noted);
    await this.started(notNoted);
    const delays = await this.#delays(reports.filter(({ error }) => error?.again === undefined));
    const moved = await this.requeue(
      reports.map((report) => requeueOf(report, delays.get(report.task_id) ?? 0)),
    );
    const taken = new Set(moved.map(({ id }) => String(id)));
    return this.#late(
      nodeId,
      reports.filter((report) => !taken.has(report.task_id)),
    );
  }

  /** Backoff of each failed task. */
  async #delays(reports: readonly Report[]): Promise<ReadonlyMap<string, number>> {
    const { retry, random, memory, writer } = this.#options;
    if (reports.length === 0) return new Map();
    const ids = sqlArray(reports.map((report) => report.task_id));
    const rows = await writer.read("retry-facts", [ids], "finish");
    const executors = new Map(reports.map((report) => [report.task_id, report.backoff]));
    return new Map(
      rows.map((row) => {
        const id = String(row["id"]);
        const { backoff } = memory.gates.limitsOf(String(row["queue"]));
        const said = [row["backoff"] as Backoff | null, executors.get(id), backoff];
        return [id, retryDelayMs(retry, said, Number(row["failures"]), random)];
      }),
    );
  }

  async #write(batch: readonly FinishOperation[]): Promise<void> {
    const reports = batch.flatMap((operation) => operation.reports);
    try {
      const { row } = await this.#options.writer.write(
        "finish",
        "finish",
        finishParameters(reports),
      );
      if (Number(row["changed"]) === reports.length) {
        this.#settle(reports);
        for (const operation of batch) operation.resolve([]);
        return;
      }
      for (const operation of batch) operation.resolve(await this.#sort(operation));
    } catch (error) {
      if (batch.length === 1 || error instanceof QueueError) {
        for (const operation of batch) operation.reject(error);
        return;
      }
      const middle = batch.length >> 1;
      await this.#write(batch.slice(0, middle));
      await this.#write(batch.slice(middle));
    }
  }

  /** Not all were stored: sorts them into stored ones, those stored by an earlier attempt, and late ones. */
  async #sort(operation: FinishOperation): Promise<readonly string[]> {
    const rows = await this.#options.writer.read(
      "outcomes",
      [sqlArray(operation.reports.map((report) => report.task_id))],
      "finish",
    );
    const byId = new Map(rows.map((row) => [String(row["id"]), row]));
    const stored: Report[] = [];
    const late: Report[] = [];
    for (const report of operation.reports) {
      const row = byId.get(report.task_id);
      const won =
        row?.["finished"] === true &&
        row["lease_id"] === report.lease_token &&
        row["state"] === (report.status === "completed" ? "SUCCEEDED" : "FAILED");
      (won ? stored : late).push(report);
    }
    this.#settle(stored);
    return this.#late(operation.nodeId, late);
  }

  #settle(reports: readonly Report[]): void {
    const { memory, metrics } = this.#options;
    const finished: number[] = [];
    for (const report of reports) {
      const lease = memory.dropLease(report.lease_token);
      const completed = report.status === "completed";
      metrics.runTime.add(report.elapsed_ms / 1_000);
      finished.push(Number(report.task_id));
      // A repeat of a report that was counted already has no lease any more.
      if (lease === undefined) continue;
      memory.moved({
        taskId: lease.taskId,
        eventType: completed ? "completed" : "failed",
        from: "RUNNING",
        to: completed ? "SUCCEEDED" : "FAILED",
        nodeId: lease.nodeId,
        attempt: lease.attempt,
      });
    }
    this.#options.onFinished(finished);
  }

  async #late(nodeId: string, late: readonly Report[]): Promise<readonly string[]> {
    if (late.length === 0) return [];
    this.#options.metrics.lateResults += late.length;
    await this.#note("late_result", nodeId, late);
    return late.map((report) => report.lease_token);
  }

  async #note(
    event: "late_result" | "lease_renewal_failed",
    nodeId: string,
    refs: readonly (LeaseRef & { readonly attempt_id?: number; readonly status?: string })[],
  ): Promise<void> {
    for (const { task_id, attempt_id } of refs)
      this.#options.memory.refused(event, task_id, nodeId, attempt_id);
    await this.#options.writer.write("finish", "note", [
      sqlArray(refs.map((ref) => ref.task_id)),
      event,
      sqlArray(refs.map(() => nodeId)),
      sqlArray(refs.map((ref) => ref.attempt_id ?? null)),
      sqlArray(
        refs.map(({ lease_token, status }) =>
          JSON.stringify(status === undefined ? { lease_token } : { lease_token, status }),
        ),
      ),
    ]);
  }
}

function requeueOf(report: Report, delayMs: number): Requeue {
  const lease = { task_id: report.task_id, lease_token: report.lease_token };
  const again = report.error?.again;
  if (again === undefined) return { ...lease, reason: "failed", delayMs, error: errorOf(report) };
  const message = `it asked to be run later more than ${QUEUE_LIMITS.snoozesMax} times`;
  const snooze = { ...lease, reason: "snoozed", error: JSON.stringify({ message }) } as const;
  return typeof again === "number"
    ? { ...snooze, delayMs: again * 1_000 }
    : { ...snooze, delayMs: 0, againAt: again };
}

function finishParameters(reports: readonly Report[]): readonly unknown[] {
  const column = (of: (report: Report) => string | number | boolean | null): string =>
    sqlColumn(reports, of);
  return [
    column((report) => report.task_id),
    column((report) => report.lease_token),
    column((report) => (report.status === "completed" ? "SUCCEEDED" : "FAILED")),
    column((report) => report.status),
    column((report) => report.result),
    column(errorOf),
    column((report) => report.elapsed_ms),
    column((report) => report.start_noted),
  ];
}

/** A task that does not succeed always has an error. */
function errorOf({ status, error }: Report): string | null {
  if (error !== null) return JSON.stringify(error);
  return status === "failed" ? '{"message":"it failed without a reason"}' : null;
}

export function isExpired({ expiresAt, renewing }: Lease, now: number): boolean {
  return expiresAt <= now && renewing === 0;
}
