/**
 * Processes under measurement, always with all their descendants: stopped and continued together, their CPU time to the
 * nanosecond (schedstat of every thread), their memory.
 */

import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Core to pin to; unpinned when absent. */
  readonly core?: number;
}

/** Output of a process kept to explain its exit. */
const OUTPUT_BYTES_MAX = 4_000;

/** Running processes; stopped ones above all must not outlive the benchmark. */
const running = new Set<Measured>();
process.on("exit", () => {
  for (const measured of running) measured.signal("SIGKILL");
});
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));

export class Measured {
  readonly pid: number;
  #output = "";
  #ended: string | null = null;
  readonly #gone: Promise<void>;

  constructor({ file, args, environment = {}, core }: Command) {
    const [command, ...rest] = [
      ...(core === undefined ? [] : ["taskset", "-c", `${core}`]),
      file,
      ...args,
    ];
    const child = spawn(command ?? file, rest, {
      // A group of its own: Ctrl-C is for the benchmark, which then ends its processes itself.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    this.pid = child.pid ?? 0;
    const keep = (data: Buffer): void => {
      this.#output = (this.#output + data.toString()).slice(-OUTPUT_BYTES_MAX);
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    running.add(this);
    this.#gone = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#ended = reason;
        running.delete(this);
        resolve();
      };
      child.once("error", (error) => end(error.message));
      child.once("exit", (code, signal) => end(`ended with ${signal ?? code}`));
    });
  }

  /** Why it has exited, with its last output; null while it runs. */
  get ended(): string | null {
    if (this.#ended === null) return null;
    const words = this.#output.trim().split("\n").slice(-3).join(" / ");
    return words === "" ? this.#ended : `${this.#ended}: ${words}`;
  }

  async firstLine(): Promise<string> {
    while (this.#ended === null && !this.#output.includes("\n")) await sleep(5);
    return this.#output.split("\n")[0] ?? "";
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    if (this.pid !== 0) await this.#gone;
  }

  /** Signals every process of the tree, even those in other groups, parents first. */
  signal(signal: NodeJS.Signals): void {
    if (this.pid === 0 || this.#ended !== null) return;
    for (const pid of treeOf(this.pid)) {
      try {
        process.kill(pid, signal);
      } catch {
        // Exited between listing and signal; `ended` has the reason.
      }
    }
  }

  /** Seconds of CPU, user and system, of the whole tree so far. */
  cpuSeconds(): number {
    return treeOf(this.pid).reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  }

  /** Resident memory of the whole tree; shared memory counts in each process, so compare differences. */
  residentBytes(): number {
    let kilobytes = 0;
    for (const pid of treeOf(this.pid)) {
      kilobytes += Number(/^Rss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
    }
    return kilobytes * 1_024;
  }
}

/** Seconds of CPU, user and system, of all threads of one process so far. */
export function cpuSecondsOf(pid: number): number {
  let nanoseconds = 0;
  for (const thread of list(`/proc/${pid}/task`))
    nanoseconds += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0] ?? 0);
  return nanoseconds / 1e9;
}

export function childrenOf(pid: number): readonly number[] {
  return treeOf(pid).slice(1);
}

/** The process and all its descendants. */
function treeOf(root: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of list("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // The name in parentheses may contain anything, so fields are counted from its end.
    const stat = read(`/proc/${name}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    parents.set(Number(name), Number(fields[1]));
  }
  const tree = [root];
  for (const pid of tree) {
    for (const [child, parent] of parents) if (parent === pid) tree.push(child);
  }
  return tree;
}

export function isOnPath(name: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
}

/** The core to pin a process to, as a part of its command. */
export function pinned(core: number | undefined): Pick<Command, "core"> {
  return core === undefined ? {} : { core };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Processes and threads come and go between listing and reading; missing ones count as zero. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function list(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
