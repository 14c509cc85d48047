/**
 * The rules of the log that can be broken one at a time. Production always runs with all of them; the
 * simulator and the tests flip one to plant a mutant and show that their checkers see the difference.
 */

export interface WalRules {
  /** Nothing is called durable before a sync that began after its bytes were written. (WAL-3) */
  readonly ackAfterSync: boolean;
  /** A failed sync is never tried again. (WAL-14) */
  readonly syncErrorFinal: boolean;
  /** No byte goes to a new segment before the one before it is synced. (WAL-6) */
  readonly oldSegmentSyncedFirst: boolean;
  /** A batch's deadline counts from its first entry, not from its last. (SW-3) */
  readonly deadlineFromFirst: boolean;
  /** Cut off a partial write left by a full disk before writing anything else. (WAL-15) */
  readonly tailCutAfterFull: boolean;
  /** A short write continues where it stopped. (WAL-15) */
  readonly shortWritesCompleted: boolean;
  /** Each batch ends with a record of what was durable before it. (WAL-13) */
  readonly batchProof: boolean;
  /** A record's checksum is verified. (FRM-2) */
  readonly verifyCrc: boolean;
  /** Numbers on disk go up by one. (WAL-12) */
  readonly lsnContiguous: boolean;
  /** Damage below something proven durable is corruption, not a torn tail. (WAL-12) */
  readonly truncateOnlyTornTail: boolean;
  /** A record of an unknown type stops recovery. (G-17) */
  readonly unknownTypeRefused: boolean;
}

export const WAL_RULES: WalRules = {
  ackAfterSync: true,
  syncErrorFinal: true,
  oldSegmentSyncedFirst: true,
  deadlineFromFirst: true,
  tailCutAfterFull: true,
  shortWritesCompleted: true,
  batchProof: true,
  verifyCrc: true,
  lsnContiguous: true,
  truncateOnlyTornTail: true,
  unknownTypeRefused: true,
};
