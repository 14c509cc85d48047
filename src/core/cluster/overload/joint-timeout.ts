/**
 * Whether a job has timed out over all its datacenters, derived by the gate that leads it from their answers.
 * Stateless: another gate with the same answers reaches the same result. (AD-34.32)
 *
 * Finished datacenters are skipped: a finished job whose end has not arrived yet is not late. (C40-24)
 */

import { formatDuration } from "../../base/duration.ts";
import type { Overdue } from "../gate-messages.ts";
import { limitText } from "./job-timeout.ts";

/** Last reported state of a job in one datacenter, and how old it is. */
export interface DatacenterClock {
  readonly datacenter: string;
  readonly ended: "no" | "timedOut" | "otherwise";
  /** Time without progress, including the silence of the datacenter. */
  readonly idleMs: number;
  readonly extendedMs: number;
  /** Workers with an extension that have not recovered. */
  readonly extended: number;
  /** The datacenter asks for a decision. */
  readonly overdue: Overdue | null;
}

type GlobalCause = "overall" | "dc_timeout" | "all_stuck";

export interface GlobalTimeout {
  readonly cause: GlobalCause;
  readonly reason: string;
}

interface JobClock {
  /** Since its submission. */
  readonly elapsedMs: number;
  readonly timeoutMs: number | null;
}

/** The first matching cause; null: the job is in time. */
export function globalTimeout(
  { elapsedMs, timeoutMs }: JobClock,
  datacenters: readonly DatacenterClock[],
  { allStuckMs }: { readonly allStuckMs: number },
): GlobalTimeout | null {
  const open = datacenters.filter(({ ended }) => ended === "no");
  if (open.length === 0) return null;
  const extendedMs = Math.max(...datacenters.map((one) => one.extendedMs));
  if (timeoutMs !== null && elapsedMs > timeoutMs + extendedMs)
    return { cause: "overall", reason: `it took longer than ${limitText(timeoutMs, extendedMs)}` };
  const over = datacenters.find(({ ended }) => ended === "timedOut");
  if (over !== undefined)
    return { cause: "dc_timeout", reason: `its time was up in ${over.datacenter}` };
  const late = open.find(isLate);
  if (late !== undefined)
    return { cause: "dc_timeout", reason: `${late.datacenter}: ${late.overdue?.reason ?? ""}` };
  if (!open.every(({ extended, idleMs }) => idleMs > allStuckMs && extended === 0)) return null;
  const where = open.length === 1 ? "its datacenter" : "any of its datacenters";
  return {
    cause: "all_stuck",
    reason: `nothing of it has advanced in ${where} for ${formatDuration(allStuckMs)}`,
  };
}

/** The limit includes extensions; a job that only waits for extended workers is not stuck. (C40-15) */
function isLate({ extended, overdue }: DatacenterClock): boolean {
  return overdue !== null && (overdue.cause === "overall" || extended === 0);
}
