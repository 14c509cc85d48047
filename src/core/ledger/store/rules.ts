/**
 * The rules of what a node keeps that can be broken one at a time. Production always runs with all of
 * them; the simulator flips one to plant a mutant and shows that its checkers see the difference.
 */

export interface StoreRules {
  /** A checkpoint counts only when all records that it covers are durable. (CKPT-1) */
  readonly checkpointAfterRecords: boolean;
  /** A job is durable in the archive before a checkpoint omits it. (LEDG-8) */
  readonly archiveBeforeCheckpoint: boolean;
  /** The log is kept from the oldest kept checkpoint on. (CKPT-4) */
  readonly logKeptForOldest: boolean;
}

export const STORE_RULES: StoreRules = {
  checkpointAfterRecords: true,
  archiveBeforeCheckpoint: true,
  logKeptForOldest: true,
};
