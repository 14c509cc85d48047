/**
 * How long a job may take in its datacenter, and what is known of its progress: kept in the log of the job, so that
 * whoever leads it next goes on with the same clock. (AD-34)
 *
 *     tracking ── over its limit, or no progress for long ──▶ the manager times it out     (nobody else decides)
 *              ──                  the same               ──▶ overdue: told to the gate ──▶ the gate says so
 *                                                              │ ▲ more time covers it     └▶ or no gate does
 *                                                              └─┘
 *
 * All times are those of the run: milliseconds since the group of the job began. Comparisons are strict: on its limit
 * a job is in time.
 */

import { formatDuration } from "../../base/duration.ts";
import type { Overdue } from "../gate-messages.ts";

export interface TimeoutTracking {
  /** When it was last seen to advance. */
  readonly progressAt: number;
  /** How far it had come then, in any unit that only rises. */
  readonly advance: number;
  /** More time than its limit, over all workers. (AD-34.41) */
  readonly extendedMs: number;
  /** The longest of the extensions. */
  readonly extensionMsMax: number;
  /** When the last one was granted; null: never. */
  readonly extendedAt: number | null;
  /** Workers that have been given more time and have not recovered since. */
  readonly extended: readonly string[];
  /** It was told to the gate, and since when. (AD-34.22) */
  readonly overdue: (Overdue & { readonly at: number }) | null;
}

export const UNTRACKED: TimeoutTracking = {
  ...{ progressAt: 0, advance: 0, extendedMs: 0, extensionMsMax: 0, extendedAt: null },
  ...{ extended: [], overdue: null },
};

export type TrackingChange =
  | { readonly kind: "progress"; readonly progressAt: number; readonly advance: number }
  | { readonly kind: "extended"; readonly worker: string; readonly ms: number }
  /** A worker has recovered, or is gone: what it was given stays. (AD-34.62) */
  | { readonly kind: "recovered"; readonly worker: string }
  | ({ readonly kind: "overdue" } & Overdue);

export interface TimeoutLimits {
  /** Without progress for longer, a job is stuck. (AD-34.11) */
  readonly stuckMs: number;
  /** An overdue job that no gate decides on is ended here after so long. (AD-34.23) */
  readonly gateSilentMs: number;
}

/** Of one job. */
export interface JobLimit {
  /** Since its acceptance; null: it may run as long as it likes. */
  readonly timeoutMs: number | null;
  /** From its acceptance until its group began. */
  readonly waitedMs: number;
}

/** Workers that one job remembers to have been given more time. */
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
      // What moves again is not stuck; what took too long has taken too long.
      const overdue = before.overdue?.cause === "stuck" ? null : before.overdue;
      return { ...before, progressAt, advance: change.advance, overdue };
    }
    case "extended": {
      // All workers together give at most as much again. (C40-16)
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
        // Looked at again with the new limit: nothing is ended by a look that this covers. (P4)
        overdue: isMore ? null : before.overdue,
      };
    }
    case "recovered":
      return { ...before, extended: before.extended.filter((one) => one !== change.worker) };
    case "overdue":
      return { ...before, overdue: { cause: change.cause, reason: change.reason, at } };
  }
}

/** Why a job is timed out if it is looked at now; null: it is in time. (AD-34.10) */
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

/** The last moment at which it is in time. */
function limitAt(tracking: TimeoutTracking, { timeoutMs, waitedMs }: JobLimit): number {
  if (timeoutMs === null) return Number.POSITIVE_INFINITY;
  return timeoutMs + tracking.extendedMs - waitedMs;
}

/** With both parts, so that a reader can tell what it was given. (AD-34.42) */
export function limitText(timeoutMs: number, extendedMs: number): string {
  const own = formatDuration(timeoutMs);
  return extendedMs === 0 ? own : `${own} and ${formatDuration(extendedMs)} that workers asked for`;
}
