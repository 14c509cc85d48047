/** Why a queued task waits, for people. */

import { explainPlacement, type NodeProfile, type Placement } from "./placement.ts";

interface WaitingTask {
  readonly executor: string;
  readonly queue: string;
  readonly placement_constraints: Placement | null;
  readonly waiting_on: number;
  readonly waits_for?: readonly string[] | undefined;
  readonly run_after: string | null;
}

interface WaitingFacts {
  /** Nodes that are not dead. */
  readonly nodes: readonly NodeProfile[];
  readonly paused: ReadonlySet<string>;
  readonly isLed: boolean;
  /** By the clock of the database. */
  readonly nowMs: number;
}

const NAMED_MAX = 10;

export function waitingReason(task: WaitingTask, facts: WaitingFacts): string {
  if (task.waiting_on > 0) {
    const names = (task.waits_for ?? []).slice(0, NAMED_MAX).join(", ");
    const which = names === "" ? "" : `: ${names}`;
    return `waits on ${task.waiting_on} other task${task.waiting_on === 1 ? "" : "s"}${which}`;
  }
  if (task.run_after !== null && Date.parse(task.run_after) > facts.nowMs)
    return `waits until ${task.run_after}`;
  if (!facts.isLed) return "no node leads: the queue moves on when one does";
  if (facts.paused.has(task.queue)) return `its queue "${task.queue}" is paused`;
  return explainPlacement(task.executor, task.placement_constraints, facts.nodes);
}
