// CPU seconds of this command with its children, and of the whole machine. Linux only: elsewhere both are null.

import { readFileSync } from "node:fs";
import { cpus } from "node:os";

const TICKS_PER_SECOND = 100;

export function cpuSeconds() {
  try {
    const own = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    // utime, stime, cutime, cstime; the state of the process is field 0 here.
    const ownTicks = own.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
    const [user, nice, system, , , irq, softirq, steal] = readFileSync("/proc/stat", "utf8")
      .split("\n", 1)[0]
      .split(/ +/)
      .slice(1)
      .map(Number);
    const busy = user + nice + system + irq + softirq + steal;
    return { own: ownTicks / TICKS_PER_SECOND, busy: busy / TICKS_PER_SECOND };
  } catch {
    return null;
  }
}

/** Share of the machine that other programs took between two readings; null where that cannot be read. */
export function foreignShare(before, after, wallSeconds) {
  if (before === null || after === null) return null;
  const foreign = after.busy - before.busy - (after.own - before.own);
  return Math.max(0, foreign) / (wallSeconds * cpus().length);
}
