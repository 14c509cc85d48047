/** Every number of the write-ahead log, with its reason. */

import { assert } from "../../base/assert.ts";

export interface WalConfig {
  readonly segmentBytes: number;
  /** Larger is refused before an LSN is assigned. (WAL-11) */
  readonly payloadBytesMax: number;
  /** A batch closes at the first of these three. (WAL-5) */
  readonly batchEntriesMax: number;
  readonly batchBytesMax: number;
  readonly batchTimeoutMs: number;
  /** The queue before the writer is bounded in both. (SW-8) */
  readonly queueEntriesMax: number;
  readonly queueBytesMax: number;
  /** Entries that may be written while a sync is under way; the next sync covers them all. */
  readonly unsyncedEntriesMax: number;
  /** Buffers that batches are encoded into. At peak up to twice as many exist. (BUF-1) */
  readonly chunkBytes: number;
  readonly chunkCount: number;
  /** Segments are read in pieces of this size at opening. */
  readonly pieceBytes: number;
  /** At opening, a last segment with less than this share free is left and a new one begun. */
  readonly freeShareMin: number;
  /** The next segment is prepared once this share of the active one is used. */
  readonly prepareShare: number;
  /** How a full disk affects waiting entries: reject them, or keep them until space returns. */
  readonly fullDisk: "reject" | "wait";
  readonly fullDiskRetryMs: number;
}

export const WAL_DEFAULTS: WalConfig = {
  segmentBytes: 67_108_864,
  payloadBytesMax: 16_777_216,
  batchEntriesMax: 100,
  batchBytesMax: 262_144,
  batchTimeoutMs: 10,
  queueEntriesMax: 10_000,
  queueBytesMax: 8_388_608,
  unsyncedEntriesMax: 6_400,
  chunkBytes: 65_536,
  chunkCount: 16,
  pieceBytes: 4_194_304,
  freeShareMin: 0.1,
  prepareShare: 0.5,
  fullDisk: "reject",
  fullDiskRetryMs: 250,
};

/** Relations between the numbers, checked where a configuration enters. */
export function walConfig(changes: Partial<WalConfig> = {}): WalConfig {
  const config = { ...WAL_DEFAULTS, ...changes };
  assert(config.batchTimeoutMs >= 0 && config.batchTimeoutMs <= 10, "batchTimeoutMs is 0 to 10");
  assert(config.batchEntriesMax >= 1, "a batch holds an entry");
  assert(config.queueEntriesMax >= config.batchEntriesMax, "the queue holds a batch");
  assert(config.unsyncedEntriesMax >= config.batchEntriesMax, "a batch may wait for its sync");
  assert(config.pieceBytes >= 1, "a piece holds a byte");
  assert(config.freeShareMin >= 0 && config.freeShareMin < 1, "the free part is a share");
  assert(config.segmentBytes >= 512 && config.segmentBytes < 2 ** 32, "offsets fit 32 bits");
  return config;
}
