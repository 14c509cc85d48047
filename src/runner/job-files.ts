/**
 * Files of a job: its module, and the data files that it reads. They keep their relative paths, so that a path in the
 * code means the same file on a worker: their common folder becomes the folder of the job.
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { errorText } from "../core/base/error-text.ts";
import { type Artifact, BLOB_BYTES_MAX, JOB_FILES_MAX } from "../core/cluster/messages.ts";
import { formatBytes } from "../core/load/results/format.ts";
import { RunError } from "./errors.ts";

export interface JobModule {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Base of paths in the code. */
  readonly folder: string;
}

/** By hash: the content of a file, or a function that reads it. */
export type JobFiles = ReadonlyMap<string, Uint8Array | (() => Promise<Uint8Array>)>;

export interface FilesOfJob {
  readonly entry: string;
  readonly files: readonly Artifact[];
  readonly contents: JobFiles;
}

export async function jobFiles(
  module: JobModule,
  paths: readonly string[],
  warn: (line: string) => void,
): Promise<FilesOfJob> {
  const { bytes, folder } = module;
  const sent = paths.filter((path) => !isAbsolute(path));
  for (const path of paths)
    if (isAbsolute(path))
      warn(`${path} is not sent, because its path is absolute: workers have to have it`);
  if (sent.length >= JOB_FILES_MAX)
    throw new RunError(`the job has ${sent.length} data files; at most ${JOB_FILES_MAX - 1}`, 2);
  const full = [...new Set(sent.map((path) => resolve(folder, path)))];
  const root = full.map(dirname).reduce(folderAbove, folder);
  const placed = (path: string): string => relative(root, path).split(sep).join("/");
  // Patterns of data files skip names that begin with a dot.
  const entry = placed(join(folder, sent.length === 0 ? module.name : `.${module.name}`));
  const hash = createHash("sha256").update(bytes).digest("hex");
  const files: Artifact[] = [{ path: entry, hash, bytes: bytes.length }];
  const contents = new Map<string, Uint8Array | (() => Promise<Uint8Array>)>([[hash, bytes]]);
  for (const path of full) {
    const artifact = { path: placed(path), ...(await digestOf(path)) };
    files.push(artifact);
    contents.set(artifact.hash, () => readFile(path));
  }
  return { entry, files, contents };
}

async function digestOf(path: string): Promise<{ hash: string; bytes: number }> {
  try {
    const { size } = await stat(path);
    if (size > BLOB_BYTES_MAX)
      throw new Error(
        `it has ${formatBytes(size)}, and at most ${formatBytes(BLOB_BYTES_MAX)} are sent`,
      );
    const digest = createHash("sha256");
    let bytes = 0;
    for await (const part of createReadStream(path)) {
      digest.update(part as Uint8Array);
      bytes += (part as Uint8Array).length;
    }
    return { hash: digest.digest("hex"), bytes };
  } catch (error) {
    throw new RunError(`cannot send the data file ${path}: ${errorText(error)}`, 2);
  }
}

/** The innermost folder that contains both. */
function folderAbove(one: string, other: string): string {
  let above = one;
  while (relative(above, other).split(sep)[0] === "..") above = dirname(above);
  return above;
}
