/** Signals to a child process and everything it started. */

import type { ChildProcess } from "node:child_process";

/**
 * Options for `spawn` and `fork`: the child leads a process group, so that one signal reaches everything it started.
 */
export const GROUP_LEADER = { detached: process.platform !== "win32" } as const;

/**
 * Signals the group of a child started with `GROUP_LEADER`, also after the child itself exited. Programs that left the
 * group (`setsid`, `detached`) are not reached. Windows has no such groups: there only the child is signalled.
 */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (!GROUP_LEADER.detached) {
    child.kill(signal);
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
