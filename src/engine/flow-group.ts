/**
 * Groups of one iteration: which is open where, and its outcome. A group ends when its body and every call that began
 * in it have ended. The iteration itself is the place in which the outermost groups open.
 */

import { PausedTime } from "./paused-time.ts";

/** Where groups can open: the iteration, or a group. */
export interface Place {
  readonly group: FlowGroup | null;
  /** Groups open in it, nearly always none or one. */
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
  /** Pauses made in it; those made beside it do not count. */
  readonly paused = new PausedTime();
  failed = false;
  /** Set when its body was notified that the iteration is over. */
  interrupted = false;
  bodyDone = false;
  /** True from the call of its body to the first await. */
  starting = true;
  /** Only the code that opened it has run since. */
  fresh = true;
  /** Calls under way in it. */
  calls = 0;

  constructor(at: Pick<FlowGroup, "path" | "parent" | "number" | "dueAt" | "beganAt">) {
    this.path = at.path;
    this.parent = at.parent;
    this.number = at.number;
    this.dueAt = at.dueAt;
    this.beganAt = at.beganAt;
    at.parent.open.push(this);
    // Before anything that its body may await.
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

  /** Further calls of an outer `step` do not belong to it. */
  leave(): void {
    const { open } = this.parent;
    const at = open.indexOf(this);
    if (at >= 0) open.splice(at, 1);
  }

  /** Counts a pause for this group and every group around it. */
  pause(ms: number, now: number): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group)
      group.paused.pause(ms, now);
  }

  /** Counts a call that began in this group and every group around it. */
  callBegan(): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group)
      group.calls++;
  }

  /** Ends a call; passes each group that ends with it to `close`. */
  callEnded(failed: boolean, close: (group: FlowGroup) => void): void {
    for (let group: FlowGroup | null = this; group !== null; group = group.parent.group) {
      group.calls--;
      if (failed) group.failed = true;
      if (group.over) close(group);
    }
  }
}

/**
 * Finds the place of code that uses what was handed out at `place`: the only group open there, as deep as it goes. Null
 * when it could be in either of two.
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
