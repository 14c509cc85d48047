/**
 * The numbers of idempotent submission, one table, and what must hold between them. A gate's cache only saves
 * time; the authority (the shards over gates, or a datacenter's manager ledger) is what makes one job per key,
 * and it does so for as long as it remembers: longer than any client retries. (IDEM-27, C50-40)
 */

import { SHARD_COUNT } from "./key.ts";
import { RETRY_POLICY, type RetryPolicy, retryWindowMs } from "./retry.ts";
import { SHARD_ENTRIES_MAX } from "./shard.ts";

export interface IdempotencyConfig {
  /** Gate: a pending entry is forgotten after this. Authority: it never is; this is when it is reported. */
  readonly pendingTtlMs: number;
  /** From when the ack was fixed. */
  readonly committedTtlMs: number;
  readonly rejectedTtlMs: number;
  readonly entriesMax: number;
  readonly cleanupIntervalMs: number;
  /** False: duplicates of a pending submission get an immediate retry answer. */
  readonly waitForPending: boolean;
  /** How long a duplicate waits for the original's answer. */
  readonly pendingWaitTimeoutMs: number;
}

export type IdempotencyProfileName = "development" | "production" | "multiDatacenter";

interface IdempotencyProfile {
  readonly gate: IdempotencyConfig;
  readonly authority: IdempotencyConfig;
}

/** How far the clocks of two primaries may be apart: entries may expire early by this. (HLC-5) */
const CLOCK_DRIFT_MAX_MS = 10_000;

const waiting = { waitForPending: true, pendingWaitTimeoutMs: 30_000 } as const;
/** Longer than the retry window, so that a lost rejection is repeated instead of decided again. */
const AUTHORITY_REJECTED_TTL_MS = 300_000;

export const IDEMPOTENCY_PROFILES: Readonly<Record<IdempotencyProfileName, IdempotencyProfile>> = {
  development: {
    gate: {
      ...waiting,
      // The wait ends before the entry does; 30 s against 30 s would race.
      pendingWaitTimeoutMs: 25_000,
      pendingTtlMs: 30_000,
      committedTtlMs: 60_000,
      rejectedTtlMs: 60_000,
      entriesMax: 1_000,
      cleanupIntervalMs: 5_000,
    },
    authority: {
      ...waiting,
      pendingTtlMs: 60_000,
      // 120 s would be shorter than the 127 s a client may retry. (C50-40)
      committedTtlMs: 300_000,
      rejectedTtlMs: AUTHORITY_REJECTED_TTL_MS,
      entriesMax: 10_000,
      cleanupIntervalMs: 10_000,
    },
  },
  production: {
    gate: {
      ...waiting,
      pendingTtlMs: 60_000,
      committedTtlMs: 300_000,
      rejectedTtlMs: 60_000,
      entriesMax: 100_000,
      cleanupIntervalMs: 10_000,
    },
    authority: {
      ...waiting,
      pendingTtlMs: 120_000,
      committedTtlMs: 600_000,
      rejectedTtlMs: AUTHORITY_REJECTED_TTL_MS,
      entriesMax: 500_000,
      cleanupIntervalMs: 30_000,
    },
  },
  multiDatacenter: {
    gate: {
      ...waiting,
      pendingTtlMs: 120_000,
      committedTtlMs: 600_000,
      rejectedTtlMs: 60_000,
      entriesMax: 100_000,
      cleanupIntervalMs: 30_000,
    },
    authority: {
      ...waiting,
      pendingTtlMs: 300_000,
      committedTtlMs: 1_800_000,
      rejectedTtlMs: AUTHORITY_REJECTED_TTL_MS,
      entriesMax: 1_000_000,
      cleanupIntervalMs: 60_000,
    },
  },
};

/** An even share: keys spread by SHA-256. */
export function shardEntriesMax(config: IdempotencyConfig): number {
  return Math.ceil(config.entriesMax / SHARD_COUNT);
}

/** Returns the problems of a profile, as messages for the author of the file; empty if the node may start. */
export function checkIdempotencyProfile(
  profile: IdempotencyProfile,
  retry: RetryPolicy = RETRY_POLICY,
): readonly string[] {
  return [...checkCacheBelowAuthority(profile), ...checkRetryWindow(profile.authority, retry)];
}

/** The part a node can check itself; client patience is known only where the profile is chosen. */
export function checkCacheBelowAuthority({
  gate,
  authority,
}: IdempotencyProfile): readonly string[] {
  return [
    ...checkNumbers("gate", gate),
    ...checkNumbers("authority", authority),
    ...checkBelow(gate, authority),
  ];
}

function checkNumbers(who: string, config: IdempotencyConfig): string[] {
  const problems: string[] = [];
  const { waitForPending: _, ...numbers } = config;
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value) || value <= 0) {
      problems.push(`idempotency ${who}.${name} is ${value}; it must be a positive whole number`);
    }
  }
  if (config.pendingWaitTimeoutMs >= config.pendingTtlMs) {
    problems.push(
      `idempotency ${who}.pendingWaitTimeoutMs (${config.pendingWaitTimeoutMs}) must be shorter than ` +
        `${who}.pendingTtlMs (${config.pendingTtlMs}): nobody may wait for an entry that is gone`,
    );
  }
  const ttlMs = Math.min(config.pendingTtlMs, config.committedTtlMs, config.rejectedTtlMs);
  if (config.cleanupIntervalMs > ttlMs) {
    problems.push(
      `idempotency ${who}.cleanupIntervalMs (${config.cleanupIntervalMs}) must not be longer than the ` +
        `shortest TTL (${ttlMs}): expired entries would pile up`,
    );
  }
  if (shardEntriesMax(config) > SHARD_ENTRIES_MAX) {
    problems.push(
      `idempotency ${who}.entriesMax (${config.entriesMax}) must be at most ` +
        `${SHARD_ENTRIES_MAX * SHARD_COUNT}: a shard holds ${SHARD_ENTRIES_MAX} entries`,
    );
  }
  return problems;
}

/** IDEM-27: forgetting a key while its client still retries would create a second job. */
function checkRetryWindow(authority: IdempotencyConfig, retry: RetryPolicy): string[] {
  const windowMs = retryWindowMs(retry);
  const needed = windowMs + CLOCK_DRIFT_MAX_MS;
  return (["committedTtlMs", "rejectedTtlMs"] as const)
    .filter((name) => authority[name] <= needed)
    .map(
      (name) =>
        `idempotency authority.${name} (${authority[name]}) must be longer than a client may retry: ` +
        `${retry.retriesMax + 1} attempts of ${retry.attemptTimeoutMs} ms and their pauses take up to ` +
        `${windowMs} ms, clocks may differ by ${CLOCK_DRIFT_MAX_MS} ms; set it above ${needed}, ` +
        "or let clients retry less",
    );
}

/** A gate that remembers longer than the authority would answer for jobs the authority knows nothing of. */
function checkBelow(gate: IdempotencyConfig, authority: IdempotencyConfig): string[] {
  return (["pendingTtlMs", "committedTtlMs", "rejectedTtlMs"] as const)
    .filter((name) => gate[name] >= authority[name])
    .map(
      (name) =>
        `idempotency gate.${name} (${gate[name]}) must be shorter than authority.${name} ` +
        `(${authority[name]}): the gate's cache must forget first`,
    );
}
