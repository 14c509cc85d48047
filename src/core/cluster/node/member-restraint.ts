/**
 * Reduces the activity of a slow member, measured by its health and timer lag: fewer probes and less gossip in
 * membership, and no leadership. (BP-1, BP-6)
 */

import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Restraint } from "../../membership/swim/types.ts";
import { UNRESTRAINED } from "../../membership/swim/types.ts";
import {
  Degradation,
  type DegradationView,
  degradationLog,
  LagTimer,
} from "../overload/degradation.ts";
import type { MemberOutput } from "./member-output.ts";

export class MemberRestraint {
  readonly #levels = new Degradation();
  readonly #timer = new LagTimer();
  readonly #out: MemberOutput;
  #reported: Restraint = UNRESTRAINED;

  constructor(out: MemberOutput) {
    this.#out = out;
  }

  get dueAt(): number {
    return this.#timer.dueAt;
  }

  start(now: Millis): void {
    this.#timer.start(now);
  }

  /** Worse of the membership health and the health of the current level. */
  health(score: number): number {
    return Math.max(score, this.#levels.actions.health);
  }

  view(): DegradationView {
    return this.#levels.view();
  }

  /** Returns the new restraint of membership; null if unchanged. `leader`: of the group that we vote in. */
  tick(score: number, leader: NodeId | null, now: Millis): Restraint | null {
    const lagMs = this.#timer.take(now);
    if (lagMs === null) return null;
    const change = this.#levels.sample({ health: score, lagMs });
    if (change !== null) this.#out.push(degradationLog(change, lagMs, score));
    const { newsShare, probesSkipped, timeouts } = this.#levels.actions;
    const awaited = this.#levels.level === "normal" ? null : leader;
    if (change === null && this.#reported.leader === awaited) return null;
    this.#reported = { newsShare, probesSkipped, timeouts, leader: awaited };
    return this.#reported;
  }
}
