/**
 * Timeout of a job in its datacenter and its known progress, kept in the log of the job so that the next leader
 * continues with the same clock. (AD-34)
 *
 *     tracking ── over its limit, or no progress for long ──▶ the manager times it out     (nobody else decides)
 *              ──                  the same               ──▶ overdue: gate notified ──▶ the gate decides
 *                                                              │ ▲ more time covers it   └▶ or no gate does
 *                                                              └─┘
 *
 * All times are those of the run: milliseconds since the group of the job began. Comparisons are strict: a job exactly
 * at its limit is in time.
 */

import { formatDuration } from "../../base/duration.ts";
import type { Overdue } from "../gate-messages.ts";

export interface TimeoutTracking {
  /** When the job last advanced. */
  readonly progressAt: number;
  /** Progress at that time, in any unit that only increases. */
  readonly advance: number;
  /** Extension of the limit, over all workers. (AD-34.41) */
  readonly extendedMs: number;
  /** The longest extension. */
  readonly extensionMsMax: number;
  /** When the last extension was granted; null: never. */
  readonly extendedAt: number | null;
  /** Workers with an extension that have not recovered since. */
  readonly extended: readonly string[];
  /** Why it was reported to the gate as overdue, and since when. (AD-34.22) */
  readonly overdue: (Overdue & { readonly at: number }) | null;
}

export const UNTRACKED: TimeoutTracking = {
  ...{ progressAt: 0, advance: 0, extendedMs: 0, extensionMsMax: 0, extendedAt: null },
  ...{ extended: [], overdue: null },
};

export type TrackingChange =
  | { readonly kind: "progress"; readonly progressAt: number; readonly advance: number }
  | { readonly kind: "extended"; readonly worker: string; readonly ms: number }
  /** A worker has recovered, or is gone: granted time stays granted. (AD-34.62) */
  | { readonly kind: "recovered"; readonly worker: string }
  | ({ readonly kind: "overdue" } & Overdue);

export interface TimeoutLimits {
  /** A job is stuck after this long without progress. (AD-34.11) */
  readonly stuckMs: number;
  /** An overdue job that no gate decides on is ended here after this long. (AD-34.23) */
  readonly gateSilentMs: number;
}

/** Limit of one job. */
export interface JobLimit {
  /** Since its acceptance; null: no limit. */
  readonly timeoutMs: number | null;
  /** From its acceptance until its group began. */
  readonly waitedMs: number;
}

/** Workers with an extension that one job remembers. */
const EXTENDED_MAX = 1_000;

/** `at`: when the change was decided. */
export function track(
  before: TimeoutTracking,
  change: TrackingChange,
  at: number,
  { timeoutMs }: JobLimit,
): TimeoutTracking {
  switch (change.kind) {
    case "progress": {
      const progressAt = Math.max(before.progressAt, Math.min(change.progressAt, at));
      // A job that advances again is not stuck; one over its limit stays over it.
      const overdue = before.overdue?.cause === "stuck" ? null : before.overdue;
      return { ...before, progressAt, advance: change.advance, overdue };
    }
    case "extended": {
      // All extensions together at most double the limit. (C40-16)
      const most = timeoutMs ?? Number.POSITIVE_INFINITY;
      const ms = Math.max(0, change.ms);
      const extendedMs = Math.min(most, before.extendedMs + ms);
      const isMore = extendedMs > before.extendedMs || before.overdue?.cause === "stuck";
      const others = before.extended.filter((one) => one !== change.worker);
      return {
        ...{ ...before, extendedMs, extendedAt: at },
        progressAt: Math.max(before.progressAt, at),
        extensionMsMax: Math.max(before.extensionMsMax, ms),
        extended: [...others, change.worker].slice(-EXTENDED_MAX),
        // Judged again under the new limit, so that nothing it covers is ended. (P4)
        overdue: isMore ? null : before.overdue,
      };
    }
    case "recovered":
      return { ...before, extended: before.extended.filter((one) => one !== change.worker) };
    case "overdue":
      return { ...before, overdue: { cause: change.cause, reason: change.reason, at } };
  }
}

/** Why a job is timed out at this time; null: it is in time. (AD-34.10) */
export function overdueAt(
  tracking: TimeoutTracking,
  at: number,
  limit: JobLimit,
  { stuckMs }: Pick<TimeoutLimits, "stuckMs">,
): Overdue | null {
  if (at > limitAt(tracking, limit)) {
    const reason = `it took longer than ${limitText(limit.timeoutMs ?? 0, tracking.extendedMs)}`;
    return { cause: "overall", reason };
  }
  if (at - tracking.progressAt <= stuckMs) return null;
  if (tracking.extendedAt !== null && at - tracking.extendedAt < stuckMs) return null;
  return { cause: "stuck", reason: `nothing of it has advanced for ${formatDuration(stuckMs)}` };
}

/** When it is overdue if nothing happens until then. */
export function overdueFrom(
  tracking: TimeoutTracking,
  limit: JobLimit,
  { stuckMs }: Pick<TimeoutLimits, "stuckMs">,
): number {
  const movedAt = Math.max(tracking.progressAt, tracking.extendedAt ?? 0);
  return Math.min(limitAt(tracking, limit), movedAt + stuckMs) + 1;
}

/** The last time at which it is in time. */
function limitAt(tracking: TimeoutTracking, { timeoutMs, waitedMs }: JobLimit): number {
  if (timeoutMs === null) return Number.POSITIVE_INFINITY;
  return timeoutMs + tracking.extendedMs - waitedMs;
}

/** Shows both parts, so that a reader can tell the extension. (AD-34.42) */
export function limitText(timeoutMs: number, extendedMs: number): string {
  const own = formatDuration(timeoutMs);
  return extendedMs === 0 ? own : `${own} and ${formatDuration(extendedMs)} that workers asked for`;
}
