/**
 * `file("cart.json")`: a body, or a form value, that is read from a file beside the workflow. Short files are read once
 * per core and kept in memory; long ones are read while they are sent.
 */

import { readFileSync, statSync } from "node:fs";
import { basename, extname, resolve } from "node:path";
import {
  type CallEnvironment,
  type Preparable,
  prepareBeforeLoop,
  workflowFolder,
} from "../protocol.ts";
import { type BodyContent, FileSource, IN_MEMORY_BYTES_MAX } from "./body-source.ts";
import type { EncodedBody, FormFile } from "./multipart.ts";

/** Total size of short files kept by one core; further files are read while they are sent. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Distinct paths cached by one core. */
const FILES_MAX = 1_024;

const TYPES: Readonly<Record<string, string>> = {
  ".bin": "application/octet-stream",
  ".csv": "text/csv",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".html": "text/html",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".json": "application/json",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain",
  ".webp": "image/webp",
  ".xml": "application/xml",
  ".zip": "application/zip",
};

const files = new Map<string, BodyContent>();
let keptBytes = 0;

export class FilePart implements Preparable, EncodedBody, FormFile {
  readonly path: string;
  readonly contentType: string;
  #content: BodyContent | undefined;

  constructor(path: string, contentType?: string) {
    if (typeof path !== "string" || path === "") throw new TypeError("file(…) needs a path");
    this.path = path;
    this.contentType =
      contentType ?? TYPES[extname(path).toLowerCase()] ?? "application/octet-stream";
    // A file named by a function in the loop is checked when it is sent.
    if (workflowFolder() === null) prepareBeforeLoop(this);
  }

  get dataFile(): string {
    return this.path;
  }

  get fileName(): string {
    return basename(this.path);
  }

  get content(): BodyContent {
    if (this.#content === undefined) {
      const folder = workflowFolder();
      if (folder === null) throw new Error(`file("${this.path}") is used before it was read`);
      this.#content = contentOf(resolve(folder, this.path), this.path);
    }
    return this.#content;
  }

  async prepare({ folder }: Pick<CallEnvironment, "folder">): Promise<void> {
    this.#content ??= contentOf(resolve(folder, this.path), this.path);
  }
}

export const file = (path: string, contentType?: string): FilePart =>
  new FilePart(path, contentType);

/** Reads synchronously: before the loop, or the first time that a function names the file. */
function contentOf(full: string, path: string): BodyContent {
  const known = files.get(full);
  if (known !== undefined) return known;
  const content = readContent(full, path);
  if (files.size >= FILES_MAX) {
    files.clear();
    keptBytes = 0;
  }
  files.set(full, content);
  if (content instanceof Uint8Array) keptBytes += content.length;
  return content;
}

function readContent(full: string, path: string): BodyContent {
  try {
    const stats = statSync(full);
    if (!stats.isFile()) throw new Error("it is not a file");
    const short = stats.size <= IN_MEMORY_BYTES_MAX && keptBytes + stats.size <= KEPT_BYTES_MAX;
    return short ? readFileSync(full) : new FileSource(full, stats.size);
  } catch (cause) {
    throw new Error(`cannot read ${full}, named by file("${path}")`, { cause });
  }
}
