/**
 * A load test as a job of a cluster. The jobs of a task are numbered, and each is submitted under a key derived from
 * the task and its number, so that no two of them load at once whatever happens to the nodes of the queue:
 *
 *     attempt 1 ──submit 1──▶ job ── its machine is lost, the job runs on
 *     attempt 2 ──follows the same job, or takes its results──▶ end
 *
 * An attempt continues the job of the previous one, as reported in its progress; without progress, the same key leads
 * to the same job. The next number is used only when the job has finished and its result was consumed, or when a former
 * attempt cancelled it. (Decision 78)
 */

import { createHash } from "node:crypto";
import { EXIT_FAILURE, EXIT_INTERRUPTED } from "../../host/exit-codes.ts";
import { INTERRUPTED_REASON } from "../../host/interruption.ts";
import type { ExecutionContext } from "../worker/executor.ts";
import {
  type Loadtest,
  type LoadtestOutcome,
  type ReportedJob,
  runLoadtest,
} from "./loadtest-program.ts";

/** A cancel crosses a network that may be electing leaders, and the job may stop gracefully. */
const KILL_AFTER_MS = 60_000;

/** Part of an attempt's progress, for the next one. */
interface ClusterProgress {
  readonly job: string;
  readonly job_number: number;
  /** The attempt has evaluated its result: the next one needs another job. */
  readonly job_taken: boolean;
}

export async function runOnCluster(
  test: Loadtest,
  cluster: readonly string[],
  context: ExecutionContext,
): Promise<LoadtestOutcome> {
  const { submitted_at: submittedAt, progress } = await context.history();
  // Ids of tasks begin at 1 in every database: the time distinguishes those of two queues on one cluster.
  const key = createHash("sha256").update(`${context.idempotencyKey} ${submittedAt}`).digest("hex");
  const before = readProgress(progress);
  let number = before === null ? 1 : before.job_number + (before.job_taken ? 1 : 0);
  let rejoin = before === null || before.job_taken ? null : before.job;
  for (; ; number++) {
    const outcome = await runJob({ test, cluster, context, key, number, rejoin });
    const mayGoOn = number < context.attempt && !context.signal.aborted;
    if (!mayGoOn || !isOfFormerAttempt(outcome)) return outcome;
    context.log(`${outcome.job?.id} was cancelled with the attempt that it belonged to`);
    rejoin = null;
  }
}

interface JobOfTask {
  readonly test: Loadtest;
  readonly cluster: readonly string[];
  readonly context: ExecutionContext;
  /** Idempotency key of the task. */
  readonly key: string;
  readonly number: number;
  readonly rejoin: string | null;
}

async function runJob(of: JobOfTask): Promise<LoadtestOutcome> {
  const { test, cluster, context, key, number, rejoin } = of;
  let figures: object = {};
  let job: string | null = null;
  const report = (isTaken: boolean): void => {
    if (job === null) return;
    const known: ClusterProgress = { job, job_number: number, job_taken: isTaken };
    context.progress({ ...figures, ...known });
  };
  const former = rejoin === null ? [] : ["--rejoin", rejoin];
  const command = ["submit", ...cluster, "--idempotency-key", `${key}-${number}`, ...former];
  const outcome = await runLoadtest(command, test, {
    context,
    killAfterMs: KILL_AFTER_MS,
    onFigures: (latest) => {
      figures = latest;
      report(false);
    },
    onJob: ({ id }: ReportedJob) => {
      job = id;
      report(false);
    },
  });
  if (outcome.job === null && outcome.code === EXIT_FAILURE)
    throw new Error(`the cluster did not take the load test: ${outcome.words}`);
  if (outcome.job?.status !== null) report(true);
  return outcome;
}

/** Cancelled by the process of an attempt whose node had exited, or had lost its lease. */
function isOfFormerAttempt({ code, job }: LoadtestOutcome): boolean {
  return code === EXIT_INTERRUPTED && job?.reason === INTERRUPTED_REASON;
}

function readProgress(value: unknown): ClusterProgress | null {
  const { job, job_number: number, job_taken: isTaken } = Object(value) as Partial<ClusterProgress>;
  if (typeof job !== "string" || typeof number !== "number") return null;
  return { job, job_number: number, job_taken: isTaken === true };
}
