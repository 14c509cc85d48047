/** Facts about this machine, for planning and for the report. */

import { readFileSync } from "node:fs";
import os from "node:os";

/** Physical cores where the system reports them (LOC: one executor each), else the available parallelism. */
export function physicalCores(): number {
  const available = os.availableParallelism();
  try {
    const text = readFileSync("/proc/cpuinfo", "utf8");
    const cores = new Set<string>();
    for (const processor of text.split("\n\n")) {
      const socket = /^physical id\s*:\s*(\d+)/m.exec(processor)?.[1];
      const core = /^core id\s*:\s*(\d+)/m.exec(processor)?.[1];
      if (socket !== undefined && core !== undefined) cores.add(`${socket}/${core}`);
    }
    return cores.size === 0 ? available : Math.min(available, cores.size);
  } catch {
    return available;
  }
}

export function cpuModel(): string {
  return os.cpus()[0]?.model.trim() ?? "unknown";
}
