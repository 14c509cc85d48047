/**
 * The files of a run. All are written under temporary names and renamed only when every one of them is complete;
 * summary.json comes last, so a folder that has it has everything.
 */

import { mkdir, mkdtemp, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { RunSummary } from "../../core/load/results/model.ts";
import { makeFolder } from "../../host/folders.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";
import { reportHtml } from "./html.ts";
import { junitXml } from "./junit.ts";
import { summaryJson } from "./summary-json.ts";

const RESULTS_FOLDER = "hyperscale-results";
/** Runs of the same name in the same second before the search for a free folder fails. */
const SAME_SECOND_MAX = 1_000;
/** Results may contain secrets: only the owner can read a folder that we chose. */
const PRIVATE = { folder: 0o700, file: 0o600 } as const;
/** A named folder may be shared on purpose, as with the collector of a CI server; the umask decides. */
const SHARED_FILE = 0o666;
const SLUG_LENGTH_MAX = 40;

interface OutputOptions {
  /** Used as it is; by default a new folder under `hyperscale-results/`. */
  readonly folder?: string | undefined;
  /** Adds steps.csv and series.csv. */
  readonly csv?: boolean | undefined;
  /** Report page without data, instead of the installed one. */
  readonly page?: string | undefined;
}

/** The results could not be written; the message says which, why, and what to do. */
export class OutputError extends Error {
  override readonly name = "OutputError";
}

/** Returns the paths written: summary.json, report.html, junit.xml, then CSV if requested. */
export async function writeOutputs(
  summary: RunSummary,
  options: OutputOptions = {},
): Promise<string[]> {
  const html = await reportHtml(summary, { page: options.page }).catch((error: Error) => error);
  const files: [string, string][] = [
    ["summary.json", summaryJson(summary)],
    ...(html instanceof Error ? [] : [["report.html", html] satisfies [string, string]]),
    ["junit.xml", junitXml(summary)],
  ];
  if (options.csv === true) {
    files.push(["steps.csv", stepsCsv(summary)], ["series.csv", seriesCsv(summary)]);
  }
  const folder = options.folder ?? (await newResultsFolder(summary));
  let written: string[];
  try {
    await makeFolder(folder);
    const mode = options.folder === undefined ? PRIVATE.file : SHARED_FILE;
    written = await writeTogether(folder, files, mode);
  } catch (error) {
    const problem = explain(error, folder);
    const kept = await keepElsewhere(files);
    throw new OutputError(`${problem.message}${kept}`, { cause: error });
  }
  // Keep the results of a long run even if the report page is missing.
  if (html instanceof Error) {
    const problem = `wrote ${written.join(", ")}, but no report.html: ${html.message}`;
    throw new OutputError(problem, { cause: html });
  }
  return written;
}

/** Checks before a run that its results can be written. Leaves nothing behind. */
export async function probeOutputs(folder: string = RESULTS_FOLDER): Promise<void> {
  let made: string | undefined;
  try {
    made = await makeFolder(folder);
  } catch (error) {
    throw explain(error, folder);
  }
  try {
    const probe = join(folder, `.probe.${process.pid}.tmp`);
    await writeFile(probe, "");
    await rm(probe, { force: true });
  } catch (error) {
    // Another run that began at the same time has removed its probe, and the folder.
    if (codeOf(error) !== "ENOENT") throw explain(error, folder);
  } finally {
    if (made !== undefined) await removeEmpty(folder, made);
  }
}

/** Removes folders from the innermost to the outermost; one that is in use meanwhile stays. */
async function removeEmpty(innermost: string, outermost: string): Promise<void> {
  for (let folder = resolve(innermost); ; folder = dirname(folder)) {
    const removed = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!removed || folder === resolve(outermost)) return;
  }
}

/** Saves the results of a long run in a second place. */
async function keepElsewhere(files: readonly (readonly [string, string])[]): Promise<string> {
  try {
    const place = await mkdtemp(join(tmpdir(), "hyperscale-results-"));
    await writeTogether(place, files, PRIVATE.file);
    return `; they are in ${place} instead`;
  } catch {
    // No place is writable: the terminal still shows the summary.
    return "";
  }
}

/** Creates a new folder for this run, `hyperscale-results/2026-01-31T09-05-00Z-checkout`. */
export async function newResultsFolder(
  { name, startedAt }: Pick<RunSummary, "name" | "startedAt">,
  under: string = RESULTS_FOLDER,
): Promise<string> {
  const second = new Date(startedAt).toISOString().slice(0, 19).replaceAll(":", "-");
  const base = join(under, `${second}Z-${slug(name)}`);
  try {
    await makeFolder(under);
    for (let attempt = 1; attempt <= SAME_SECOND_MAX; attempt++) {
      const folder = attempt === 1 ? base : `${base}-${attempt}`;
      if (await created(folder)) return folder;
    }
  } catch (error) {
    throw explain(error, under);
  }
  throw new OutputError(`${base} and ${SAME_SECOND_MAX} variants of it exist; give --out DIR`);
}

async function created(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: PRIVATE.folder });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function writeTogether(
  folder: string,
  files: readonly (readonly [string, string])[],
  mode: number,
): Promise<string[]> {
  const moves = files.map(([name, text]) => ({
    text,
    from: join(folder, `.${name}.${process.pid}.tmp`),
    to: join(folder, name),
  }));
  try {
    for (const { from, text } of moves) await writeFile(from, text, { mode });
    for (const { from, to } of moves.toReversed()) await rename(from, to);
  } catch (error) {
    for (const { from } of moves) await rm(from, { force: true });
    throw error;
  }
  return moves.map(({ to }) => to);
}

/** "examples/quick start.ts" → "quick-start", "https://host:8080/a?b" → "host-8080-a". */
function slug(name: string): string {
  const isUrl = /^[a-z]+:\/\//i.test(name);
  const bare = isUrl
    ? name.replace(/^[a-z]+:\/\//i, "").replace(/[?#].*$/, "")
    : (name.split(/[/\\]/).at(-1) ?? name).replace(/\.[cm]?[jt]s$/, "");
  const text = bare.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return text.slice(0, SLUG_LENGTH_MAX).replace(/[-.]+$/, "") || "run";
}

function explain(error: unknown, folder: string): OutputError {
  const reason = reasonOf(codeOf(error), folder) ?? `${(error as Error).message}`;
  return new OutputError(`cannot write the results to ${folder}: ${reason}`, { cause: error });
}

function reasonOf(code: string | undefined, folder: string): string | undefined {
  switch (code) {
    case "EEXIST":
    case "ENOTDIR":
      return "there is a file where the folder should be; choose another folder with --out DIR";
    case "EACCES":
    case "EPERM":
      return `no permission; choose another folder with --out DIR, or make ${folder} writable`;
    case "EROFS":
      return "the file system is read-only; choose another folder with --out DIR";
    case "ENOENT":
      return "no folder can be made there; choose another one with --out DIR";
    case "ENOSPC":
    case "EDQUOT":
      return "the disk is full; free some space or choose another folder with --out DIR";
    case "EISDIR":
      return "a folder has the name of a result file; remove it or choose another --out DIR";
    default:
      return undefined;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
