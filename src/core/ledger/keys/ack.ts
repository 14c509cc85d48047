/**
 * Acknowledgement stored with an accepted key, beside its job: version 1, accepted, queue position 0, protocol 1.0, no
 * capabilities. All acceptances are alike today; the bytes are part of a shard's entries and snapshots.
 */
export const STORED_ACK: Uint8Array = Uint8Array.of(1, 1, 0, 1, 0, 0);
