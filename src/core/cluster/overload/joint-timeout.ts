/**
 * Whether a job has run out of time over all its datacenters, as the gate that leads it knows from their answers. It
 * keeps nothing: another gate that asks the same datacenters comes to the same. (AD-34.32)
 *
 * Whoever has ended is not asked: a finished job whose end is not heard yet is not late. (C40-24)
 */

import { formatDuration } from "../../base/duration.ts";
import type { Overdue } from "../gate-messages.ts";
import { limitText } from "./job-timeout.ts";

/** How a job does in one datacenter, as it was last told, and for how long nothing was told since. */
export interface DatacenterClock {
  readonly datacenter: string;
  readonly ended: "no" | "timedOut" | "otherwise";
  /** Without an advance, the silence of the datacenter included. */
  readonly idleMs: number;
  readonly extendedMs: number;
  /** Workers that have been given more time and have not recovered. */
  readonly extended: number;
  /** It asks for a decision. */
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

/** The first that holds; null: it is in time. */
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

/** Its limit counts what its workers were given; one that only waits for them is not stuck. (C40-15) */
function isLate({ extended, overdue }: DatacenterClock): boolean {
  return overdue !== null && (overdue.cause === "overall" || extended === 0);
}
