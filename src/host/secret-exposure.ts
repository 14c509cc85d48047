/** A file with secrets that other users of the machine can read: taken, with a warning, as ssh does it. */

import { statSync } from "node:fs";
import type { Log } from "./ports/log.ts";

const OTHERS = 0o077;

/** What is wrong with the file's permissions, or null. Elsewhere than on POSIX modes say nothing. */
function exposureOf(file: string): string | null {
  if (process.platform === "win32") return null;
  const mode = statSync(file).mode & 0o777;
  if ((mode & OTHERS) === 0) return null;
  return `mode ${mode.toString(8).padStart(4, "0")}: others on this machine may read it or write to it`;
}

/** Null: there is no such file, and nothing to say. */
export function warnOfExposure(file: string | null, log: Log): void {
  const problem = file === null ? null : exposureOf(file);
  if (problem === null) return;
  log.event("warn", "secret.exposed", { file, problem, do: `chmod 600 ${file}` });
}
