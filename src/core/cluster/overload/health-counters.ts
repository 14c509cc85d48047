/** Counters about workers that did not advance, for metrics. */

import type { ExtensionDenial } from "../extension-messages.ts";

export interface HealthCounts {
  /** Number and total duration of granted extensions. */
  readonly granted: number;
  readonly grantedMs: number;
  readonly denied: ReadonlyMap<string, number>;
  readonly evicted: ReadonlyMap<string, number>;
  /** Workers retained only because too many failed at once. */
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
