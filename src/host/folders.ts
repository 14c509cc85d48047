/** Folders on disk. */

import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Another process may remove a folder while we create one inside it. */
const ATTEMPTS_MAX = 3;

/**
 * Creates a folder and its missing parents; returns the outermost that was created. Node's own recursive form never
 * returns where the system cannot create folders, as under /proc.
 */
export async function makeFolder(
  path: string,
  options: { readonly mode?: number } = {},
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await makeMissing(await missingUnder(resolve(path)), options);
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** From the outermost to the folder itself. */
async function missingUnder(path: string): Promise<string[]> {
  const missing: string[] = [];
  for (let at = path; !(await isFolder(at)); at = dirname(at)) missing.unshift(at);
  return missing;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) await mkdir(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

async function makeMissing(
  missing: readonly string[],
  options: { readonly mode?: number },
): Promise<string | undefined> {
  let outermost: string | undefined;
  for (const path of missing) {
    try {
      await mkdir(path, options);
      outermost ??= path;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
  return outermost;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
