/**
 * How slow this member is, by its own health and its own timer, and what it does less of for that: probes and news
 * in membership, and leading in the election. (BP-1, BP-6)
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
  #told: Restraint = UNRESTRAINED;

  constructor(out: MemberOutput) {
    this.#out = out;
  }

  get dueAt(): number {
    return this.#timer.dueAt;
  }

  start(now: Millis): void {
    this.#timer.start(now);
  }

  /** Of membership's own health and what the level stands for, the worse. */
  health(score: number): number {
    return Math.max(score, this.#levels.actions.health);
  }

  view(): DegradationView {
    return this.#levels.view();
  }

  /** What membership is told; null while nothing has changed. `leader`: of the group that we vote in. */
  tick(score: number, leader: NodeId | null, now: Millis): Restraint | null {
    const lagMs = this.#timer.take(now);
    if (lagMs === null) return null;
    const change = this.#levels.sample({ health: score, lagMs });
    if (change !== null) this.#out.push(degradationLog(change, lagMs, score));
    const { newsShare, probesSkipped, timeouts } = this.#levels.actions;
    const awaited = this.#levels.level === "normal" ? null : leader;
    if (change === null && this.#told.leader === awaited) return null;
    this.#told = { newsShare, probesSkipped, timeouts, leader: awaited };
    return this.#told;
  }
}
