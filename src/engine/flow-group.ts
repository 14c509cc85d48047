/**
 * Groups of one iteration: which is open where, and what came of it. A group is over when its body
 * and every call that began in it have ended. The iteration itself is the place in which the
 * outermost groups open.
 */

import { PausedTime } from "./paused-time.ts";

/** Where groups can open: the iteration, or a group. */
export interface Place {
  readonly group: FlowGroup | null;
  /** Groups that are open in it, nearly always none or one. */
  open: FlowGroup[];
}

export class FlowGroup implements Place {
  readonly group = this;
  open: FlowGroup[] = [];
  /** "checkout/pay". */
  readonly path: string;
  readonly parent: Place;
  readonly number: number;
  readonly dueAt: number;
  readonly beganAt: number;
  /** Pauses made in it; those made beside it are no rest of its own. */
  readonly paused = new PausedTime();
  failed = false;
  /** Its body was told that the iteration is over. */
  interrupted = false;
  bodyDone = false;
  /** Its body has been called and has not come to its first wait. */
  starting = true;
  /** Nothing but the code that opened it has run since. */
  fresh = true;
  /** Calls in it that are under way. */
  calls = 0;

  constructor(at: Pick<FlowGroup, "path" | "parent" | "number" | "dueAt" | "beganAt">) {
    this.path = at.path;
    this.parent = at.parent;
    this.number = at.number;
    this.dueAt = at.dueAt;
    this.beganAt = at.beganAt;
    at.parent.open.push(this);
    // Before anything that its body may wait for.
    queueMicrotask(() => {
      this.fresh = false;
    });
  }

  /** The code that runs now cannot be its body: it opened the group and went on. */
  get beside(): boolean {
    return this.fresh && !this.starting;
  }

  get over(): boolean {
    return this.bodyDone && this.calls === 0;
  }

  /** No further call of an outer `step` belongs to it. */
  leave(): void {
    const { open } = this.parent;
    const at = open.indexOf(this);
    if (at >= 0) open.splice(at, 1);
  }

  /** Its body rests, and so does that of every group around. */
  pause(ms: number, now: number): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group)
      group.paused.pause(ms, now);
  }

  /** A call began in it, and so in every group around. */
  callBegan(): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group)
      group.calls++;
  }

  /** That call ended; gives each group that is over by that to `close`. */
  callEnded(failed: boolean, close: (group: FlowGroup) => void): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group) {
      group.calls--;
      if (failed) group.failed = true;
      if (group.over) close(group);
    }
  }
}

/**
 * Where code runs that uses what was handed out at `place`: in the group that is open there alone, as
 * deep as it goes. Null when it could be in either of two.
 */
export function innermost(place: Place): Place | null {
  let at = place;
  for (;;) {
    const around = at.open.filter((group) => !group.beside);
    const [only, second] = around;
    if (only === undefined) return at;
    if (second !== undefined) return null;
    at = only;
  }
}
