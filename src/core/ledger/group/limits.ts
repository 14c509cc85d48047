/** The bounds of one replica: what a slow disk, a silent peer or an eager client can make it keep. */

/** Strong reads waiting for a quorum; more are refused at once. */
export const READS_MAX = 4_096;

/** Messages waiting for the disk. More are dropped: the network may lose any message anyway. */
export const HELD_MAX = 1_024;

/** Windows of entries a replica accepts before its disk has them; further ones are dropped as if lost. */
export const UNSYNCED_WINDOWS_MAX = 4;

/** Entries above the commit number that a transfer keeps in memory; windows are far smaller. */
export const STAGED_ENTRIES_MAX = 65_536;

/** Bytes of a transfer, its snapshot included: it becomes one record, and the log takes 16 MiB. */
export const STAGED_BYTES_MAX = 15 * 1_048_576;

/** Approximate upper bound of an entry's size beyond its data. */
export const ENTRY_OVERHEAD_BYTES = 256;

/** Bytes of entries kept below a snapshot; beyond this, a lagging replica gets the snapshot instead. */
export const TAIL_BYTES_MAX = 1_048_576;

/** Requests for a page of a log without an answer before a joining replica gives up. */
export const FETCH_TRIES_MAX = 8;

/** Pages sent at once to a replica that missed some: at 80 ms of round trip faster than any window. */
export const RESEND_PAGES_MAX = 16;

/** Characters kept of why a group was stopped: two event ids and a sentence. */
export const BROKEN_TEXT_MAX = 512;

/**
 * The largest counters a decoder takes. Far beyond every use, and far enough below the largest whole
 * number that adding to one of them stays exact.
 */
export const VIEW_MAX = 2 ** 48;
export const SEQ_MAX = 2 ** 48;
export const EPOCH_MAX = 2 ** 32;

/**
 * How far a peer's counter may be ahead of our own. A view rises by one election, an epoch by one replacement, an index
 * by one event: no replica misses this many. Without these bounds one message of one peer, or one flipped bit, would
 * use up the counters of a group for ever.
 */
export const VIEW_JUMP_MAX = 2 ** 20;
export const SEQ_JUMP_MAX = 2 ** 40;
export const EPOCH_JUMP_MAX = 2 ** 16;

/** Milliseconds of a peer's monotonic clock. */
export const TIME_MS_MAX = 2 ** 52;
