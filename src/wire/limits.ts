/**
 * Every bound of the wire in one place, with its reason. Receivers enforce them before they allocate;
 * senders enforce them too, so that a mistake is found where it is made. (SEC-10)
 */

import { assert } from "../core/base/assert.ts";

/** One TCP frame as it travels, compressed and sealed. (C20-1) */
export const FRAME_BYTES_MAX = 1_048_576;
/** The same before the greeting is done: what a stranger may make us set aside. */
export const GREETING_FRAME_BYTES_MAX = 16_384;
/** A frame's payload after inflation. */
export const INFLATED_BYTES_MAX = 50 * 1_048_576;
/** Real payloads compress 3 to 20 times; a bomb a thousand times. (SEC-9) */
export const INFLATE_RATIO_MAX = 100;
/** Below this size deflate costs more than it saves. */
export const COMPRESS_BYTES_MIN = 1_024;
/** A payload that does not fit one frame is sent in parts of this size, which leaves space for sealing. */
export const CHUNK_BYTES = 1_000_000;
/** All parts of one transfer together. */
export const TRANSFER_BYTES_MAX = 50 * 1_048_576;
/** Transfers one connection may have open; each costs up to TRANSFER_BYTES_MAX. */
export const TRANSFERS_OPEN_MAX = 4;

/** Tolerated reordering of one sender's datagrams, in packets over all its destinations. */
export const REPLAY_WINDOW_PACKETS = 4_096;
/** Sender sessions with a full window; half a KiB each. */
export const SESSIONS_MAX = 4_096;
/** Sessions of which only the highest counter is kept. Beyond it we take a new session ourselves. */
export const SESSIONS_CLOSED_MAX = 65_536;
/** One key seals at most this many packets: far below every bound of AES-GCM. */
export const SESSION_PACKETS_MAX = 2 ** 32;
/** Packets queued for one destination while it is being greeted, and for all of them. */
export const HELD_PER_DESTINATION_MAX = 8;
export const HELD_MAX = 1_024;
/** Packets waiting longer than this are stale and dropped. */
export const HELD_MS_MAX = 2_000;
/** A greeting is repeated after this long without an answer, if there is something to send. */
export const GREETING_REPEAT_MS = 200;
/** Destinations whose session we remember; the least recently used is forgotten and greeted again. */
export const DESTINATIONS_MAX = 8_192;
/** Keys in a ring: the current one, the next, the last, and one spare. */
export const RING_KEYS_MAX = 4;

/** Token bucket of one unknown host: packets that would cost a decryption. (SEC-7) */
export const SOURCE_BUCKET_SIZE = 100;
export const SOURCE_BUCKET_PER_SECOND = 10;
/** The same for a session that has proved itself. (SEC-8) */
export const MEMBER_BUCKET_SIZE = 2_000;
export const MEMBER_BUCKET_PER_SECOND = 1_000;
/** All unknown sources together: at about 25 us each this is at most 5 % of a core. */
export const STRANGERS_BUCKET_SIZE = 2_000;
export const STRANGERS_BUCKET_PER_SECOND = 2_000;
/** Sources with a bucket of their own; spoofed sources push out the least recently used. */
export const SOURCES_MAX = 4_096;

/** Connections open at once, from one host, and how many are kept for hosts where members live. */
export const CONNECTIONS_MAX = 1_024;
export const CONNECTIONS_PER_HOST_MAX = 128;
export const CONNECTIONS_FOR_MEMBERS = 512;

/** Names in messages. */
export const ID_BYTES_MAX = 128;
export const ERROR_BYTES_MAX = 512;
export const CAPABILITIES_MAX = 64;

assert(CHUNK_BYTES + 1_024 < FRAME_BYTES_MAX, "a part fits a frame with its sealing");
assert(TRANSFER_BYTES_MAX <= INFLATED_BYTES_MAX, "a transfer is no larger than a payload may be");
assert(HELD_PER_DESTINATION_MAX < HELD_MAX, "one destination cannot hold all that may be held");
