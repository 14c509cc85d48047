/**
 * Health of the generator itself: how late this core's event loop runs its timers, and how much CPU it uses. A timer
 * every 10 ms compares its actual with its intended time.
 */

import inspector from "node:inspector";
import type { CoreVitals } from "../core/load/job/core-messages.ts";
import { clock } from "../protocols/call.ts";
import { clearTimeout, setTimeout } from "../protocols/net/timers.ts";

export const LAG_INTERVAL_MS = 10;
/** A core that used this share of CPU during a stall caused it itself. */
const OWN_CPU_SHARE_MIN = 0.5;
/** Maximum age of the resident size in a frame: reading it is a system call on a file. */
const RESIDENT_MS_MAX = 1_000;
/** With a debugger open, a loop that stalled this long was stopped at a breakpoint. */
const BREAKPOINT_MS_MIN = 500;

export interface LagListener {
  /** A timer fired this many milliseconds late; `isOwn`: the core was computing meanwhile. */
  lagged(ms: number, isOwn: boolean): void;
  /** A debugger stopped the process for this long. */
  stoodStill(ms: number): void;
}

/** Part of the monitor that an execution uses. */
export type CoreLag = Pick<LagMonitor, "start" | "stop" | "lastTurnAt" | "vitalsOfWindow">;

export class LagMonitor {
  /** When the loop last reached its timers; code that never yields leaves it behind. */
  lastTurnAt = clock();
  #timer: NodeJS.Timeout | undefined;
  #expectedAt = 0;
  /** CPU usage when the timer was set. */
  #turnCpu = process.cpuUsage();
  #cpuStart = process.cpuUsage();
  #startedAt = clock();
  /** Since the last window. */
  #windowCpu = process.cpuUsage();
  #windowLagMs = 0;
  #residentBytes = 0;
  #residentAt = Number.NEGATIVE_INFINITY;

  #listener: LagListener = { lagged: () => {}, stoodStill: () => {} };

  start(listener: LagListener): void {
    this.#listener = listener;
    this.#cpuStart = process.cpuUsage();
    this.#windowCpu = this.#cpuStart;
    this.#windowLagMs = 0;
    this.#startedAt = clock();
    this.#arm(this.#startedAt);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** CPU time and the largest timer lag since the last call. */
  vitalsOfWindow(): { readonly cpuMs: number; readonly lagMsMax: number } {
    const now = process.cpuUsage();
    const { system, user } = this.#windowCpu;
    const vitals = {
      cpuMs: Math.max(0, now.user + now.system - user - system) / 1_000,
      lagMsMax: this.#windowLagMs,
    };
    this.#windowCpu = now;
    this.#windowLagMs = 0;
    return vitals;
  }

  vitals(activeUsers: number): CoreVitals {
    const used = process.cpuUsage(this.#cpuStart);
    const now = clock();
    const elapsedMs = now - this.#startedAt;
    if (now - this.#residentAt >= RESIDENT_MS_MAX) {
      this.#residentAt = now;
      this.#residentBytes = process.memoryUsage.rss();
    }
    return {
      cpu: elapsedMs > 0 ? (used.user + used.system) / 1_000 / elapsedMs : 0,
      residentBytes: this.#residentBytes,
      activeUsers,
    };
  }

  #arm(now: number): void {
    this.lastTurnAt = now;
    this.#turnCpu = process.cpuUsage();
    this.#expectedAt = now + LAG_INTERVAL_MS;
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#fired(), LAG_INTERVAL_MS);
    else this.#timer.refresh();
  }

  #fired(): void {
    const now = clock();
    const lateMs = Math.max(0, now - this.#expectedAt);
    if (lateMs >= BREAKPOINT_MS_MIN && inspector.url() !== undefined)
      this.#listener.stoodStill(lateMs);
    else {
      const { system, user } = process.cpuUsage(this.#turnCpu);
      this.#listener.lagged(lateMs, (user + system) / 1_000 >= lateMs * OWN_CPU_SHARE_MIN);
      this.#windowLagMs = Math.max(this.#windowLagMs, lateMs);
    }
    this.#arm(now);
  }
}
