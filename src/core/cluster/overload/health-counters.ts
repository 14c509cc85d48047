/** What became of workers that did not advance, counted for metrics. */

import type { ExtensionDenial } from "../extension-messages.ts";

export interface HealthCounts {
  /** More time that was granted, and how much of it. */
  readonly granted: number;
  readonly grantedMs: number;
  readonly denied: ReadonlyMap<string, number>;
  readonly evicted: ReadonlyMap<string, number>;
  /** Given up they would have been, were they not so many. */
  readonly held: ReadonlyMap<string, number>;
}

export class HealthCounters implements HealthCounts {
  granted = 0;
  grantedMs = 0;
  readonly denied = new Map<string, number>();
  readonly evicted = new Map<string, number>();
  readonly held = new Map<string, number>();

  onGranted(ms: number): void {
    this.granted++;
    this.grantedMs += ms;
  }

  onDenied(why: ExtensionDenial): void {
    this.denied.set(why, (this.denied.get(why) ?? 0) + 1);
  }

  onFailed(what: "evicted" | "held", cause: "silent" | "stuck"): void {
    this[what].set(cause, (this[what].get(cause) ?? 0) + 1);
  }
}
