/** Programs that executions start in the process group of this process, and may leave behind. */

import childProcess from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const SYNC_STARTS = ["spawnSync", "execSync", "execFileSync"] as const;

export class StartedPrograms {
  #hasStarted = false;

  constructor() {
    // Node publishes asynchronous starts only.
    subscribe("child_process", () => this.#note());
    for (const name of SYNC_STARTS) {
      const start = childProcess[name] as (...args: unknown[]) => unknown;
      const noted = (...args: unknown[]): unknown => {
        this.#note();
        return start(...args);
      };
      Object.assign(childProcess, { [name]: noted });
    }
    syncBuiltinESMExports();
  }

  /** Whether programs started since the last call may still run. Without /proc, any that was started counts. */
  areLeft(): boolean {
    if (!this.#hasStarted) return false;
    this.#hasStarted = false;
    return process.platform !== "linux" || hasGroupMembers(process.pid);
  }

  #note(): void {
    this.#hasStarted = true;
  }
}

/** Whether the group of `leader` has processes other than the leader. */
function hasGroupMembers(leader: number): boolean {
  return readdirSync("/proc").some((name) => {
    const pid = Number(name);
    return pid > 0 && pid !== leader && groupOf(pid) === leader;
  });
}

/** Process group of a running process; null for a zombie and one that has exited. */
function groupOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain anything.
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? null : Number(group);
  } catch {
    return null;
  }
}
