/**
 * How late this core's event loop runs its timers, and how much CPU it uses: the health of the
 * generator itself. A timer every 10 ms compares when it came with when it should have.
 */

import inspector from "node:inspector";
import { Histogram } from "../core/run/stats/histogram.ts";
import { clock } from "../protocols/call.ts";
import type { CoreVitals } from "./messages.ts";

const INTERVAL_MS = 10;
/** With a debugger open, a loop that was away for so long was held at a breakpoint. */
const BREAKPOINT_MS_MIN = 500;

export class LagMonitor {
  /** When the loop last reached its timers; code that never yields leaves it behind. */
  lastTurnAt = clock();
  readonly lagUs = new Histogram();
  #timer: NodeJS.Timeout | undefined;
  #expectedAt = 0;
  #cpuStart = process.cpuUsage();
  #startedAt = clock();

  #stoodStill: (ms: number) => void = () => {};

  /** `stoodStill` hears of times in which a debugger held the process. */
  start(stoodStill: (ms: number) => void): void {
    this.#stoodStill = stoodStill;
    this.lagUs.clear();
    this.#cpuStart = process.cpuUsage();
    this.#startedAt = clock();
    this.#arm(this.#startedAt);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  vitals(activeUsers: number): CoreVitals {
    const used = process.cpuUsage(this.#cpuStart);
    const elapsedMs = clock() - this.#startedAt;
    return {
      cpu: elapsedMs > 0 ? (used.user + used.system) / 1_000 / elapsedMs : 0,
      residentBytes: process.memoryUsage.rss(),
      activeUsers,
    };
  }

  #arm(now: number): void {
    this.lastTurnAt = now;
    this.#expectedAt = now + INTERVAL_MS;
    this.#timer = setTimeout(() => this.#fired(), INTERVAL_MS);
  }

  #fired(): void {
    const now = clock();
    const lateMs = Math.max(0, now - this.#expectedAt);
    if (lateMs >= BREAKPOINT_MS_MIN && inspector.url() !== undefined) this.#stoodStill(lateMs);
    else this.lagUs.record(lateMs * 1_000);
    this.#arm(now);
  }
}
