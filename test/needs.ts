/**
 * Tests that need what a machine may lack. Where it is absent they are skipped with the reason, which
 * the end of `npm test` prints; tools/test-programs.mjs installs what it may before that.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

declare module "vitest" {
  interface TaskMeta {
    /** Why a test was skipped, for tools/test-recorder.mjs. */
    skippedBecause?: string;
  }
}

interface Needs {
  readonly skip?: true;
  readonly meta?: { readonly skippedBecause: string };
}

/** Options of a test or a group: it runs where this is present, else it is skipped for that reason. */
export function needs(present: boolean, reason: string): Needs {
  return present ? {} : { skip: true, meta: { skippedBecause: reason } };
}

export const isRoot = process.getuid?.() === 0;

/** Whether a program can be started; its exit code does not matter. */
export function hasProgram(name: string, ...args: readonly string[]): boolean {
  return spawnSync(name, args, { stdio: "ignore" }).error === undefined;
}

/** A browser for the pages, from Debian's place or `CHROMIUM_PATH`. */
export const chromiumPath = [
  process.env["CHROMIUM_PATH"] ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => path !== "" && existsSync(path));

export const NO_BROWSER = "no Chromium (package chromium, or CHROMIUM_PATH)";
export const NO_MOUNT = "file systems may not be mounted here (root and CAP_SYS_ADMIN)";
