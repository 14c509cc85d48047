/**
 * Files of a pattern: `*` and `?` match inside a name, `**` matches any folders. Names that begin with a dot are
 * skipped, as in shells, and links to folders are not followed.
 */

import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DefinitionError } from "./errors.ts";

/** Entries checked for one pattern: a mistake does not walk through a whole disk. */
const ENTRIES_MAX = 100_000;

/** Paths from the folder, with forward slashes, in the same order everywhere. */
export async function matchingFiles(pattern: string, folder: string): Promise<readonly string[]> {
  const parts = pattern.split("/");
  const fixed = parts.findIndex((part) => /[*?]/.test(part));
  const isFolder = fixed === -1;
  // A plain path is a folder: everything in it.
  const rest = isFolder ? ["**", "*"] : parts.slice(fixed);
  const begin = (isFolder ? parts : parts.slice(0, fixed)).join("/");
  const found: string[] = [];
  const walk = { left: ENTRIES_MAX, pattern };
  await collect(resolve(folder, begin), begin, rest, walk, found);
  return [...new Set(found)].sort(byCodeUnits);
}

async function collect(
  folder: string,
  path: string,
  [part = "", ...rest]: readonly string[],
  walk: { left: number; readonly pattern: string },
  found: string[],
): Promise<void> {
  const entries = await entriesOf(folder, walk);
  if (part === "**") {
    await collect(folder, path, rest, walk, found);
    for (const entry of entries)
      if (entry.isDirectory() && !entry.name.startsWith("."))
        await collect(
          join(folder, entry.name),
          below(path, entry.name),
          [part, ...rest],
          walk,
          found,
        );
    return;
  }
  const matches = nameMatcher(part);
  for (const entry of entries) {
    if (!matches(entry.name)) continue;
    const own = below(path, entry.name);
    if (rest.length === 0 && (await isFile(entry, join(folder, entry.name)))) found.push(own);
    if (rest.length > 0 && entry.isDirectory())
      await collect(join(folder, entry.name), own, rest, walk, found);
  }
}

/** Includes links to files. */
async function isFile(entry: Dirent, path: string): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isFile();
  return (await stat(path).catch(() => null))?.isFile() === true;
}

async function entriesOf(
  folder: string,
  walk: { left: number; readonly pattern: string },
): Promise<readonly Dirent[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (cause) {
    throw new DefinitionError(`cannot read the folder ${folder} of feed.files("${walk.pattern}")`, {
      cause,
    });
  }
  walk.left -= entries.length;
  if (walk.left < 0)
    throw new DefinitionError(
      `feed.files("${walk.pattern}") looks at more than ${ENTRIES_MAX} files; name a folder further down`,
    );
  return entries;
}

function nameMatcher(part: string): (name: string) => boolean {
  const text = part
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  const whole = new RegExp(`^${text}$`, "su");
  return (name) => whole.test(name) && (part.startsWith(".") || !name.startsWith("."));
}

function below(path: string, name: string): string {
  return path === "" ? name : path.endsWith("/") ? `${path}${name}` : `${path}/${name}`;
}

function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
