/**
 * Overload of this process, measured: the lag of its event loop, its CPU as a share of the one core that it can use,
 * and memory as a share of the heap, the container or the machine. (AD-18)
 */

import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";

export const PRESSURE_EVERY_MS = 500;
/** Often enough to see what people notice; an idle node wakes for little else. */
const SAMPLE_MS = 100;
/** Interval for container and machine: it takes four files, and their memory fills slowly. */
const SYSTEM_EVERY_MS = 2_000;
const MICROS_PER_MS = 1e3;
/** Memory limit of the container, if any. */
const CGROUP_MAX = "/sys/fs/cgroup/memory.max";
const CGROUP_USED = "/sys/fs/cgroup/memory.current";
const MACHINE = "/proc/meminfo";
const CGROUP_STAT = "/sys/fs/cgroup/memory.stat";

interface Measured {
  readonly lagMs: number;
  readonly cpu: number;
  readonly memory: number;
}

export class PressureMeter {
  /** Not the runtime's monitor: after a reset that one misses the first delay. */
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_MS).unref();
  #sampledAt = performance.now();
  #lateMs = 0;
  #samples = 0;
  #cpu = process.cpuUsage();
  #at = performance.now();
  readonly #system = new SystemMemory();

  /** Measurements since the last call. */
  take(): Measured {
    const now = performance.now();
    const elapsedMs = Math.max(1, now - this.#at);
    const { system, user } = process.cpuUsage(this.#cpu);
    const lagMs = this.#samples === 0 ? 0 : this.#lateMs / this.#samples;
    this.#lateMs = 0;
    this.#samples = 0;
    this.#cpu = process.cpuUsage();
    this.#at = now;
    return {
      lagMs,
      cpu: Math.min(1, (user + system) / MICROS_PER_MS / elapsedMs),
      memory: Math.max(heapShare(), this.#system.share(now)),
    };
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const now = performance.now();
    this.#lateMs += Math.max(0, now - this.#sampledAt - SAMPLE_MS);
    this.#samples++;
    this.#sampledAt = now;
  }
}

function heapShare(): number {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  return bounded(used_heap_size / heap_size_limit);
}

/**
 * Memory of the tighter of container and machine. File caches do not count, since the system releases them; where it
 * does not report them, the machine is ignored.
 */
class SystemMemory {
  /** Fixed when the process starts, like the memory of the machine. */
  readonly #isLimited = numberIn(CGROUP_MAX) !== null;
  readonly #machineBytes = totalmem();
  #share = 0;
  #readAt = Number.NEGATIVE_INFINITY;

  share(now: number): number {
    if (now - this.#readAt < SYSTEM_EVERY_MS) return this.#share;
    this.#readAt = now;
    const container = this.#isLimited ? containerShare() : 0;
    this.#share = bounded(Math.max(container, machineShare(this.#machineBytes)));
    return this.#share;
  }
}

function bounded(share: number): number {
  return Math.min(1, Math.max(0, share));
}

function containerShare(): number {
  const max = numberIn(CGROUP_MAX);
  const used = numberIn(CGROUP_USED);
  if (max === null || used === null) return 0;
  const cached = Number(/^inactive_file (\d+)$/m.exec(textOf(CGROUP_STAT) ?? "")?.[1] ?? 0);
  return (used - cached) / max;
}

function machineShare(machineBytes: number): number {
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(textOf(MACHINE) ?? "")?.[1];
  return available === undefined ? 0 : 1 - (Number(available) * 1_024) / machineBytes;
}

/** Null where there is no such file, or no number in it ("max"). */
function numberIn(path: string): number | null {
  const text = textOf(path)?.trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : null;
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
