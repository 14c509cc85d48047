/** Consequence of a plan ended by time instead of by its work: the broken rule, and its text. */

import { formatDuration } from "../core/base/duration.ts";
import type { Fault } from "../core/load/job/faults.ts";
import type { LoadPlan } from "../core/load/plan/load.ts";

/** Identical on every core, so that it is one fault. */
export function timeIsUpFault(plan: LoadPlan): Fault | null {
  if (plan.kind !== "shared" && plan.kind !== "perUser" && plan.kind !== "search") return null;
  const ended = `maxDuration (${formatDuration(plan.durationMsMax)}) ended it before`;
  return plan.kind === "search"
    ? { gate: "the search was decided", text: `${ended} the breakpoint was found`, count: 0 }
    : { gate: "every iteration was done", text: `${ended} all iterations were done`, count: 0 };
}
