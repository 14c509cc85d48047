/** Bounds of the membership machine, each with its reason. */

/** Members kept, alive and dead together: 64 Ki rows are about 30 MB. */
export const MEMBERS_MAX = 65_536;
/** Indirect probes we run for others at one time. */
export const RELAYS_MAX = 512;
/** Streams we have open at one time: joins, push/pulls, fallback pings. */
export const EXCHANGES_MAX = 64;
/** Seeds tried in parallel while we know no member. (BOOT-2) */
export const JOINS_PARALLEL_MAX = 10;
/** Addresses of forgotten members that are still tried now and then. */
export const LOST_ADDRESSES_MAX = 64;
/** Identities of user gossip remembered against repeats. */
export const USER_SEEN_MAX = 4_096;
/** Tombstones of members that were removed unconfirmed. */
export const TOMBSTONES_MAX = 4_096;
/** Peers asked about the owner of a disputed name. */
export const NAME_QUERY_PEERS_MAX = 15;
/** Pings per probe interval to members never reached yet, beside the round's own probe: an eighth of them. */
export const GREETINGS_PER_INTERVAL_MIN = 4;
export const GREETINGS_PER_INTERVAL_MAX = 32;
/** Raised incarnations reserved per write to disk. */
export const INCARNATION_BLOCK = 32;
