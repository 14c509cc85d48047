/** The numbers of a ledger node. */

import { assert } from "../../base/assert.ts";
import { checkVsrConfig, VSR_DEFAULTS } from "../group/config.ts";
import { VSR_RULES } from "../group/rules.ts";
import { ANTI_ENTROPY_DEFAULTS, checkAntiEntropyConfig } from "../job/config.ts";
import {
  checkCacheBelowAuthority,
  IDEMPOTENCY_PROFILES,
  type IdempotencyConfig,
} from "../keys/config.ts";
import { IDEMPOTENCY_RULES } from "../keys/rules.ts";
import { NODE_RULES } from "./rules.ts";
import type { LedgerNodeConfig, LedgerRules } from "./types.ts";

export const LEDGER_NODE_DEFAULTS: LedgerNodeConfig = {
  vsr: VSR_DEFAULTS,
  idempotency: IDEMPOTENCY_PROFILES.production.authority,
  gateCache: IDEMPOTENCY_PROFILES.production.gate,
  antiEntropy: ANTI_ENTROPY_DEFAULTS,
  replicas: 3,
  fewGates: "single",
  datacenters: [],
  requestTimeoutMs: 5_000,
  routeRetryMs: 100,
  compactEntries: 512,
  retentionMs: 24 * 3_600_000,
  recoveredAheadMsMax: 24 * 3_600_000,
};

export const LEDGER_RULES: LedgerRules = {
  vsr: VSR_RULES,
  idempotency: IDEMPOTENCY_RULES,
  node: NODE_RULES,
};

/** Pending requests of a node, its own clients' and its peers'. Beyond it the answer is "retry". */
export const REQUESTS_MAX = 65_536;
/** Operations waiting for space in one group's window. */
export const GROUP_QUEUE_MAX = 8_192;
/**
 * Share of both queues and of the disk backlog reserved for cancels and aborts, so that load can be stopped when
 * everything is full.
 */
export const RESERVED_FOR_CANCELS = 0.1;
/**
 * Bytes by which a group's log grows before it is folded into a snapshot, however few its entries are: a
 * replica that gets the snapshot writes both into one record, a window that is not committed beside them.
 */
export const COMPACT_BYTES = 2 * 1_048_576;
/** Messages of one batch to one peer. */
export const BATCH_MESSAGES_MAX = 4_096;
/** How often finished jobs are checked for archiving. */
export const ARCHIVE_EVERY_MS = 60_000;
/** Archived jobs that are being read at once, for clients and for peers. */
export const ARCHIVE_READS_MAX = 1_024;

/** Relations between the numbers; a node with a configuration that breaks one is never made. */
export function checkLedgerNodeConfig(config: LedgerNodeConfig): void {
  const { vsr, idempotency: authority, gateCache: gate } = config;
  checkVsrConfig(vsr);
  checkAntiEntropyConfig(config.antiEntropy);
  const [problem] = checkCacheBelowAuthority({ gate, authority });
  assert(problem === undefined, problem ?? "");
  assert(config.replicas % 2 === 1, "a group has an odd number of replicas");
  assert(config.compactEntries > vsr.tailEntries, "compaction leaves a tail");
  assert(config.routeRetryMs > 0, "a request is not sent again at once");
  assert(config.routeRetryMs < config.requestTimeoutMs, "a request is routed more than once");
  assert(config.retentionMs >= 0, "the retention is a time");
}

/** Configuration of the shards here: waiters are answered by the request deadline at the latest. (IDEM-29) */
export function shardConfig(config: LedgerNodeConfig): IdempotencyConfig {
  return answeredWithin(config.idempotency, config.requestTimeoutMs);
}

/** Configuration of the key cache, with the same limit. */
export function gateConfig(config: LedgerNodeConfig): IdempotencyConfig {
  return answeredWithin(config.gateCache, config.requestTimeoutMs);
}

function answeredWithin(config: IdempotencyConfig, timeoutMs: number): IdempotencyConfig {
  return { ...config, pendingWaitTimeoutMs: Math.min(config.pendingWaitTimeoutMs, timeoutMs) };
}
