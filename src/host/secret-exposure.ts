/** A file with secrets that other users of the machine can read: accepted, with a warning, as ssh does. */

import { statSync } from "node:fs";
import type { Log } from "./ports/log.ts";

const OTHERS = 0o077;

/** Problem of the file's permissions, or null. Modes mean nothing outside POSIX. */
function exposureOf(file: string): string | null {
  if (process.platform === "win32") return null;
  const mode = statSync(file).mode & 0o777;
  if ((mode & OTHERS) === 0) return null;
  return `mode ${mode.toString(8).padStart(4, "0")}: others on this machine may read it or write to it`;
}

/** Null: there is no such file. */
export function warnOfExposure(file: string | null, log: Log): void {
  const problem = file === null ? null : exposureOf(file);
  if (problem === null) return;
  log.event("warn", "secret.exposed", { file, problem, do: `chmod 600 ${file}` });
}
