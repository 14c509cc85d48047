/**
 * A log file of bounded size: when it is full or old it is rotated, named by the time of its end, and only the newest
 * rotated files are kept.
 *
 *     node.log                              written now
 *     node.log.2026-11-16T05-20-01-123Z     rotated, at most `filesMax` of them, none older than `keepMsMax`
 *
 * A full or failed disk never stops the process: lines are lost and counted (line-writer.ts), the file is retried
 * later, and `onProblem` is called once per outage.
 */

import type { FileHandle } from "node:fs/promises";
import { open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorText } from "../../core/base/error-text.ts";
import { makeFolder } from "../folders.ts";
import { type ByteSink, Descriptor, LineWriter, type Taken } from "./line-writer.ts";

export interface LogFileOptions {
  readonly path: string;
  /** A file is rotated before it would exceed this; one batch of lines may be larger. */
  readonly bytesMax: number;
  /** A file is rotated at this age. */
  readonly ageMsMax: number;
  /** Number of rotated files kept. */
  readonly filesMax: number;
  /** Older rotated files are removed. */
  readonly keepMsMax: number;
}

const DAY_MS = 86_400_000;
export const LOG_FILE_DEFAULTS: Omit<LogFileOptions, "path"> = {
  bytesMax: 64 * 1_048_576,
  ageMsMax: DAY_MS,
  filesMax: 7,
  keepMsMax: 30 * DAY_MS,
};

/** Pause after a failure of the disk. */
const RETRY_MS = 1_000;
/** The process's own user only: lines name hosts and people. */
const MODE = 0o600;
const SET_ASIDE = /^\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;

interface OpenFile {
  readonly handle: FileHandle;
  readonly bornAt: number;
  bytes: number;
}

export class RotatingFile implements ByteSink {
  readonly #options: LogFileOptions;
  readonly #onProblem: (problem: string) => void;
  #file: OpenFile | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failing = false;
  /** The last write ended inside a line. */
  #torn = false;

  private constructor(options: LogFileOptions, onProblem: (problem: string) => void) {
    this.#options = options;
    this.#onProblem = onProblem;
  }

  /** Rejects when the file cannot be opened now: a mistake of the operator. */
  static async open(
    options: LogFileOptions,
    onProblem: (problem: string) => void,
  ): Promise<RotatingFile> {
    const file = new RotatingFile(options, onProblem);
    await makeFolder(dirname(options.path), { mode: 0o700 });
    await file.#ready(0);
    return file;
  }

  write(bytes: Buffer, done: (outcome: Taken) => void): void {
    if (performance.now() - this.#failedAt < RETRY_MS) {
      // Never within the caller's turn: it would call again at once.
      setImmediate(() => done("lost"));
      return;
    }
    this.#write(bytes).then(
      () => {
        this.#failing = false;
        done("taken");
      },
      (error: unknown) => {
        this.#failed(error);
        done("lost");
      },
    );
  }

  async #write(bytes: Buffer): Promise<void> {
    const file = await this.#ready(bytes.length);
    const whole = this.#torn ? Buffer.concat([Buffer.from("\n"), bytes]) : bytes;
    let at = 0;
    while (at < whole.length) {
      const { bytesWritten } = await file.handle.write(whole, at);
      at += bytesWritten;
      file.bytes += bytesWritten;
      this.#torn = at < whole.length;
    }
  }

  /** The file to write `bytes` to, rotated when due. */
  async #ready(bytes: number): Promise<OpenFile> {
    const { path, bytesMax, ageMsMax } = this.#options;
    this.#file ??= await openFile(path);
    const { bytes: held, bornAt } = this.#file;
    const full = held > 0 && held + bytes > bytesMax;
    const old = held > 0 && Date.now() - bornAt >= ageMsMax;
    if (!full && !old) return this.#file;
    await this.#file.handle.close();
    this.#file = null;
    await rename(path, `${path}.${new Date().toISOString().replace(/[:.]/g, "-")}`);
    this.#file = await openFile(path);
    this.#torn = false;
    await this.#prune();
    return this.#file;
  }

  /** Only files with our own name pattern: others are not ours. */
  async #prune(): Promise<void> {
    const { path, filesMax, keepMsMax } = this.#options;
    const name = basename(path);
    const names = (await readdir(dirname(path)))
      .filter((one) => one.startsWith(name) && SET_ASIDE.test(one.slice(name.length)))
      .sort()
      .reverse();
    const before = new Date(Date.now() - keepMsMax).toISOString().replace(/[:.]/g, "-");
    const surplus = names.filter(
      (one, at) => at >= filesMax || one.slice(name.length + 1) < before,
    );
    for (const one of surplus) await rm(join(dirname(path), one), { force: true });
  }

  #failed(error: unknown): void {
    this.#failedAt = performance.now();
    const file = this.#file;
    this.#file = null;
    // Errors of closing are ignored: the file is opened again.
    file?.handle.close().catch(() => undefined);
    if (this.#failing) return;
    this.#failing = true;
    this.#onProblem(errorText(error));
  }
}

async function openFile(path: string): Promise<OpenFile> {
  const handle = await open(path, "a", MODE);
  const { size, birthtimeMs } = await handle.stat();
  return { handle, bytes: size, bornAt: size > 0 ? birthtimeMs : Date.now() };
}

const STDERR = 2;

/** Writes lines to a log file; reports on stderr, once per outage, that it cannot be written. */
export async function openLogFile(options: LogFileOptions): Promise<LineWriter> {
  const errors = new LineWriter(new Descriptor(STDERR));
  const { path } = options;
  const file = await RotatingFile.open(options, (problem) => {
    errors.write(`${JSON.stringify({ level: "error", event: "log.notWritten", path, problem })}\n`);
  });
  return new LineWriter(file);
}
