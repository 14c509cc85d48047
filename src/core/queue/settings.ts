/** Settings of a node and the relations that must hold between them before anything starts. */

import { QUEUE_DEFAULTS, QUEUE_LIMITS } from "./defaults.ts";

export const ROLES = ["auto", "leader", "worker", "observer"] as const;
export type Role = (typeof ROLES)[number];

export interface QueueSettings {
  readonly leaderLeaseMs: number;
  readonly leaderRenewMs: number;
  readonly taskLeaseMs: number;
  readonly leaseCleanupMs: number;
  readonly pollIntervalMs: number;
  readonly maxParallel: number;
  /** Tasks leased beyond those that run; `auto` follows the pace of the worker. */
  readonly prefetch: number | "auto";
  readonly heartbeatMs: number;
  readonly maxAttempts: number;
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
  readonly gracePeriodMs: number;
  /** How long SUCCEEDED, FAILED and CANCELLED tasks are kept. */
  readonly retentionMs: number;
  readonly retentionFailedMs: number;
  readonly retentionCancelledMs: number;
}

export const defaultSettings: QueueSettings = QUEUE_DEFAULTS;

/** A node that runs no tasks itself only coordinates. */
const ZERO_ALLOWED = new Set(["maxParallel", "prefetch", "gracePeriodMs", "retryBaseMs"]);

/** All problems of the settings, as sentences that say how to fix them. */
export function settingProblems(settings: QueueSettings): readonly string[] {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (value === "auto") continue;
    const zeroAllowed = ZERO_ALLOWED.has(name);
    if (!Number.isFinite(value) || value < 0 || (value === 0 && !zeroAllowed)) {
      problems.push(
        `${name} must be ${zeroAllowed ? "zero or more" : "more than zero"}, not ${value}`,
      );
    }
  }
  if (settings.leaseCleanupMs >= settings.taskLeaseMs) {
    problems.push(
      `the lease cleanup interval (${settings.leaseCleanupMs} ms) must be below the task lease ` +
        `(${settings.taskLeaseMs} ms): lower it or lengthen the lease`,
    );
  }
  if (settings.leaderRenewMs * 2 > settings.leaderLeaseMs) {
    problems.push(
      `the leader renews every ${settings.leaderRenewMs} ms, which leaves no second try within its ` +
        `lease of ${settings.leaderLeaseMs} ms: renew at least twice per lease`,
    );
  }
  if (
    !Number.isInteger(settings.maxParallel) ||
    settings.maxParallel > QUEUE_LIMITS.maxParallelMax
  ) {
    problems.push(`max parallel tasks must be a whole number up to ${QUEUE_LIMITS.maxParallelMax}`);
  }
  if (
    !Number.isInteger(settings.maxAttempts) ||
    settings.maxAttempts > QUEUE_LIMITS.maxAttemptsMax
  ) {
    problems.push(`max attempts must be a whole number up to ${QUEUE_LIMITS.maxAttemptsMax}`);
  }
  if (settings.retryMaxMs < settings.retryBaseMs) {
    problems.push("the longest retry delay must not be below the first");
  }
  return problems;
}
