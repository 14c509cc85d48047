/**
 * Finished jobs, kept beside the log after they have left memory: one append-only file per day, each
 * record with its length and checksum, old days deleted as a whole. (LEDG-8, VSR-31)
 *
 *     archive_20260131.log    "HSAR" · version u16 · 0 u16, then records
 *     record                  bytes u32 · crc u32 · varint archivedAt · text job · state of the job
 *
 * A torn last record (the process died while writing it) is cut off: the job is in the log still, which
 * is only given up after the archive was synced. Anything else that does not fit is reported and left.
 */

import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import type { JobState } from "../core/ledger/job/job-state.ts";
import { JOB_ID_BYTES_MAX, JOB_STATE_BYTES_MAX } from "../core/ledger/job/limits.ts";
import { decodeJobState } from "../core/ledger/job/state-codec.ts";
import { trailEntries } from "../core/ledger/job/trail.ts";
import { checksum } from "./log/checksum.ts";

const NAME = /^archive_(\d{8})\.log$/;
const HEADER = Uint8Array.of(0x48, 0x53, 0x41, 0x52, 1, 0, 0, 0); // "HSAR", version 1
const RECORD_HEAD_BYTES = 8;
const RECORD_BYTES_MAX = JOB_STATE_BYTES_MAX + 256;
const DAY_MS = 86_400_000;

/** Where a job's record is, and the times its events lie between. */
interface Place {
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

interface OpenFile {
  readonly name: string;
  readonly handle: FileHandle;
  offset: number;
}

interface ArchiveOptions {
  readonly directory: string;
  readonly keepMs: number;
  readonly wall: () => number;
  readonly onProblem: (file: string, problem: string) => void;
}

export class Archive {
  readonly #options: ArchiveOptions;
  readonly #places = new Map<string, Place>();
  /** Records that no file holds yet. */
  #waiting: { readonly jobId: string; readonly record: Uint8Array; readonly state: JobState }[] =
    [];
  #writing: Promise<void> = Promise.resolve();
  #file: OpenFile | null = null;

  private constructor(options: ArchiveOptions) {
    this.#options = options;
  }

  static async open(options: ArchiveOptions): Promise<Archive> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const archive = new Archive(options);
    const names = (await readdir(options.directory)).filter((name) => NAME.test(name)).sort();
    for (const name of names) await archive.#scan(name, name === names.at(-1));
    await archive.expire();
    return archive;
  }

  get size(): number {
    return this.#places.size + this.#waiting.length;
  }

  /** Every job that is here. */
  jobs(): IterableIterator<string> {
    return this.#places.keys();
  }

  /** Written and synced by the next `flush`. */
  add(jobId: string, bytes: Uint8Array): void {
    const decoded = decodeJobState(bytes);
    if (this.#places.has(jobId) || !decoded.ok) return;
    const body = new ByteWriter(bytes.length + 128);
    body.varint(this.#options.wall());
    body.text(jobId);
    body.bytes(bytes);
    const payload = body.take();
    const record = new Uint8Array(RECORD_HEAD_BYTES + payload.length);
    const view = new DataView(record.buffer);
    view.setUint32(0, payload.length, true);
    view.setUint32(4, checksum(payload, 0, payload.length), true);
    record.set(payload, RECORD_HEAD_BYTES);
    this.#waiting.push({ jobId, record, state: decoded.value });
  }

  /**
   * Resolves when everything added before survives. A failure is this call's alone: what it could not
   * write waits for the next one, which may find space again.
   */
  flush(): Promise<void> {
    const flushed = this.#writing.then(() => this.#write());
    this.#writing = flushed.catch(() => {});
    return flushed;
  }

  async read(jobId: string): Promise<JobState | null> {
    const waiting = this.#waiting.find((one) => one.jobId === jobId);
    if (waiting !== undefined) return waiting.state;
    const place = this.#places.get(jobId);
    if (place === undefined) return null;
    const handle = await open(join(this.#options.directory, place.file), "r");
    try {
      const bytes = new Uint8Array(place.bytes);
      await handle.read(bytes, 0, bytes.length, place.offset);
      const record = readRecord(bytes, 0);
      if (record !== null) return record.state;
      this.#options.onProblem(place.file, `the record of ${jobId} does not fit its checksum`);
      return null;
    } finally {
      await handle.close();
    }
  }

  /** Jobs with an event between these times, both included. */
  async *between(from: number, to: number): AsyncGenerator<JobState> {
    for (const { state } of [...this.#waiting]) yield state;
    for (const [jobId, place] of [...this.#places]) {
      if (place.from > to || place.to < from) continue;
      const state = await this.read(jobId);
      if (state !== null) yield state;
    }
  }

  /** Days that nobody has to keep any more are deleted; the jobs that went with them. */
  async expire(): Promise<readonly string[]> {
    const { directory, keepMs, wall } = this.#options;
    const oldest = dayOf(wall() - keepMs);
    const gone = new Set<string>();
    for (const name of await readdir(directory)) {
      const day = NAME.exec(name)?.[1];
      if (day === undefined || day >= oldest || name === this.#file?.name) continue;
      await rm(join(directory, name), { force: true });
      gone.add(name);
    }
    const forgotten: string[] = [];
    for (const [jobId, { file }] of this.#places) {
      if (!gone.has(file)) continue;
      this.#places.delete(jobId);
      forgotten.push(jobId);
    }
    return forgotten;
  }

  async close(): Promise<void> {
    try {
      await this.flush();
    } finally {
      await this.#file?.handle.close();
      this.#file = null;
    }
  }

  async #write(): Promise<void> {
    const batch = this.#waiting.slice();
    if (batch.length === 0) return;
    const file = await this.#today();
    const start = file.offset;
    const bytes = Buffer.concat(batch.map(({ record }) => record));
    await writeWhole(file.handle, bytes, start);
    await file.handle.datasync();
    for (const { jobId, record, state } of batch) {
      this.#keep(jobId, file.name, file.offset, record.length, state);
      file.offset += record.length;
    }
    this.#waiting.splice(0, batch.length);
  }

  async #today(): Promise<OpenFile> {
    const name = `archive_${dayOf(this.#options.wall())}.log`;
    if (this.#file?.name === name) return this.#file;
    await this.#file?.handle.close();
    this.#file = null;
    const { directory } = this.#options;
    const handle = await open(join(directory, name), "a+", 0o600).then(async (made) => {
      await made.close();
      return open(join(directory, name), "r+");
    });
    try {
      this.#file = { name, handle, offset: await this.#begin(handle) };
      return this.#file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Where the first record of this process goes. */
  async #begin(handle: FileHandle): Promise<number> {
    const { size } = await handle.stat();
    if (size >= HEADER.length) return size;
    if (size > 0) await handle.truncate(0);
    await writeWhole(handle, HEADER, 0);
    await handle.sync();
    const parent = await open(this.#options.directory, "r");
    await parent.sync().finally(() => parent.close());
    return HEADER.length;
  }

  async #scan(name: string, last: boolean): Promise<void> {
    const { directory, onProblem } = this.#options;
    const handle = await open(join(directory, name), last ? "r+" : "r");
    try {
      const bytes = new Uint8Array(await handle.readFile());
      if (bytes.length < HEADER.length) return;
      if (!HEADER.every((byte, at) => bytes[at] === byte)) {
        onProblem(name, "not an archive of this version; it is left as it is");
        return;
      }
      let at = HEADER.length;
      while (at < bytes.length) {
        const record = readRecord(bytes, at);
        if (record === null) break;
        this.#keep(record.jobId, name, at, record.bytes, record.state);
        at += record.bytes;
      }
      if (at === bytes.length) return;
      onProblem(name, `${bytes.length - at} bytes at ${at} are no whole record`);
      if (last) await handle.truncate(at);
    } finally {
      await handle.close();
    }
  }

  #keep(jobId: string, file: string, offset: number, bytes: number, state: JobState): void {
    const times = [...trailEntries(state.trail)].map(({ hlc }) => hlc.wallMs);
    const from = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    const to = times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    this.#places.set(jobId, { file, offset, bytes, from, to });
  }
}

/** A disk that runs full may take a part before it says so. */
async function writeWhole(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}

function readRecord(
  bytes: Uint8Array,
  at: number,
): { readonly jobId: string; readonly state: JobState; readonly bytes: number } | null {
  if (bytes.length - at < RECORD_HEAD_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at);
  const length = view.getUint32(0, true);
  if (length > RECORD_BYTES_MAX || length > bytes.length - at - RECORD_HEAD_BYTES) return null;
  const start = at + RECORD_HEAD_BYTES;
  if (checksum(bytes, start, start + length) !== view.getUint32(4, true)) return null;
  const from = new ByteReader(bytes.subarray(start, start + length));
  from.varint();
  const jobId = from.text(JOB_ID_BYTES_MAX);
  const decoded = decodeJobState(from.bytes(JOB_STATE_BYTES_MAX));
  if (from.failed || !decoded.ok) return null;
  return { jobId, state: decoded.value, bytes: RECORD_HEAD_BYTES + length };
}

function dayOf(wallMs: number): string {
  const at = Math.floor(Math.max(0, wallMs) / DAY_MS) * DAY_MS;
  return new Date(at).toISOString().slice(0, 10).replaceAll("-", "");
}
