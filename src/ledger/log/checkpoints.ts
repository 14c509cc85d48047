/**
 * Checkpoint files beside the log. One is whole or not there: written under another name, synced,
 * renamed, and the directory synced. (CKPT-2) The newest by what it covers counts; a damaged one is
 * passed over with a warning. (CKPT-5) Three are kept, and the log behind the oldest of them. (CKPT-4)
 */

import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../../core/base/assert.ts";
import {
  CHECKPOINT_DEFAULTS,
  type CheckpointHeader,
  checkpointName,
  decodeCheckpoint,
  encodeCheckpointHeader,
  safeLsn,
} from "../../core/ledger/log/checkpoint.ts";
import { ANY_IDENTITY } from "../../core/ledger/log/segment.ts";
import { checksum } from "./checksum.ts";
import { syncDirectory } from "./file-executor.ts";
import { readDirectory } from "./look.ts";

interface Snapshot {
  readonly localLsn: number;
  readonly regionalLsn: number;
  readonly globalLsn: number;
  /** The fold of all entries up to `localLsn`, taken in one turn. (CKPT-1) */
  readonly payload: Uint8Array;
}

export interface Checkpoint {
  readonly header: CheckpointHeader;
  readonly payload: Uint8Array;
}

interface CheckpointsOptions {
  readonly directory: string;
  readonly identity: string;
  readonly keptMax?: number;
  readonly onDamaged?: (name: string, problem: string) => void;
}

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  /** Intact, newest first. */
  #kept: CheckpointHeader[] = [];

  private constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /** Reads the headers of what is there, and the newest snapshot. Changes nothing. */
  static async open(
    options: CheckpointsOptions,
  ): Promise<{ readonly checkpoints: Checkpoints; readonly latest: Checkpoint | null }> {
    const checkpoints = new Checkpoints(options);
    let latest: Checkpoint | null = null;
    const { checkpoints: names } = await readDirectory(options.directory);
    for (const { name } of names) {
      const verdict = decodeCheckpoint(await readFile(join(options.directory, name)), checksum);
      if (!verdict.ok) {
        options.onDamaged?.(name, verdict.problem);
        continue;
      }
      const { header } = verdict;
      if (![header.identity, ANY_IDENTITY].includes(options.identity)) {
        options.onDamaged?.(name, `belongs to another cluster or node (${header.identity})`);
        continue;
      }
      checkpoints.#kept.push(header);
      if (latest === null || header.localLsn > latest.header.localLsn) latest = verdict;
    }
    checkpoints.#sort();
    return { checkpoints, latest };
  }

  /** Of a directory that is not there yet. */
  static empty(options: CheckpointsOptions): Checkpoints {
    return new Checkpoints(options);
  }

  /** Newest first. */
  get kept(): readonly CheckpointHeader[] {
    return this.#kept;
  }

  /** What `Wal.compact` may be given; 0 before there is a checkpoint. */
  get safeLsn(): number {
    return safeLsn(this.#kept);
  }

  /** Resolves when the checkpoint would survive; then older ones beyond the kept go. */
  async write(snapshot: Snapshot): Promise<CheckpointHeader> {
    const { payload, ...lsns } = snapshot;
    assert(lsns.localLsn >= (this.#kept[0]?.localLsn ?? 0), "checkpoints go forwards");
    const id = randomUUID().replaceAll("-", "");
    const { directory, identity } = this.#options;
    const header: CheckpointHeader = { id, identity, createdAt: Date.now(), ...lsns };
    const path = join(directory, checkpointName(id));
    const file = await open(`${path}.tmp`, "wx", 0o600);
    try {
      await file.writev([encodeCheckpointHeader(header, payload, checksum), payload]);
      await file.sync();
    } catch (error) {
      await rm(`${path}.tmp`, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    await rename(`${path}.tmp`, path);
    await syncDirectory(directory);
    this.#kept.push(header);
    this.#sort();
    await this.#prune();
    return header;
  }

  async #prune(): Promise<void> {
    const { directory, keptMax = CHECKPOINT_DEFAULTS.keptMax } = this.#options;
    const old = this.#kept.splice(keptMax);
    for (const { id } of old) await rm(join(directory, checkpointName(id)), { force: true });
    if (old.length > 0) await syncDirectory(directory);
  }

  #sort(): void {
    this.#kept.sort((a, b) => b.localLsn - a.localLsn || b.createdAt - a.createdAt);
  }
}
