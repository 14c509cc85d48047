/** Reads finished jobs from files; the store's archive knows the position of each record. */

import { open } from "node:fs/promises";
import { join } from "node:path";
import type { JobState } from "../core/ledger/job/job-state.ts";
import type { Archive, ArchivePlace } from "../core/ledger/store/archive.ts";
import { decodeArchived } from "../core/ledger/store/archive-record.ts";
import { checksum } from "./log/checksum.ts";

export class ArchiveReader {
  readonly #dataDir: string;
  readonly #archive: Archive;
  readonly #onProblem: (file: string, problem: string) => void;

  constructor(
    dataDir: string,
    archive: Archive,
    onProblem: (file: string, problem: string) => void,
  ) {
    this.#dataDir = dataDir;
    this.#archive = archive;
    this.#onProblem = onProblem;
  }

  get size(): number {
    return this.#archive.size;
  }

  /** Jobs with an event between these times, both included. */
  async *between(from: number, to: number): AsyncGenerator<JobState> {
    for (const { state } of [...this.#archive.waiting]) yield state;
    for (const [jobId, place] of [...this.#archive.places]) {
      if (place.from > to || place.to < from) continue;
      const state = await this.#read(jobId, place);
      if (state !== null) yield state;
    }
  }

  async #read(jobId: string, place: ArchivePlace): Promise<JobState | null> {
    const handle = await open(join(this.#dataDir, place.path), "r");
    try {
      const bytes = new Uint8Array(place.bytes);
      await handle.read(bytes, 0, bytes.length, place.offset);
      const record = decodeArchived(bytes, 0, checksum);
      if (record !== null && record !== "more") return record.state;
      this.#onProblem(place.path, `the record of ${jobId} does not fit its checksum`);
      return null;
    } finally {
      await handle.close();
    }
  }
}
