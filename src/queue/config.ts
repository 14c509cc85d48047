/** Settings from the environment and the command line, in that order; durations are seconds there. */

import { QueueError } from "../core/queue/errors.ts";
import { defaultSettings, type QueueSettings } from "../core/queue/settings.ts";

type SettingSource = { readonly [Name in keyof QueueSettings]?: number | undefined };
type Given = { -readonly [Name in keyof QueueSettings]?: number };

/** Environment name -> setting; the `_SECONDS` ones may be fractions. (TQ-45) */
const ENVIRONMENT: Readonly<Record<string, keyof QueueSettings>> = {
  HYPERSCALE_LEADER_LEASE_SECONDS: "leaderLeaseMs",
  HYPERSCALE_LEADER_RENEW_SECONDS: "leaderRenewMs",
  HYPERSCALE_LEASE_DURATION_SECONDS: "taskLeaseMs",
  HYPERSCALE_LEASE_CLEANUP_INTERVAL_SECONDS: "leaseCleanupMs",
  HYPERSCALE_POLL_INTERVAL_SECONDS: "pollIntervalMs",
  HYPERSCALE_HEARTBEAT_SECONDS: "heartbeatMs",
  HYPERSCALE_MAX_PARALLEL_TASKS_PER_NODE: "maxParallel",
  HYPERSCALE_PREFETCH: "prefetch",
  HYPERSCALE_RETRY_BASE_SECONDS: "retryBaseMs",
  HYPERSCALE_GRACE_PERIOD_SECONDS: "gracePeriodMs",
  HYPERSCALE_RETENTION_SECONDS: "retentionMs",
  HYPERSCALE_RETENTION_FAILED_SECONDS: "retentionFailedMs",
  HYPERSCALE_RETENTION_CANCELLED_SECONDS: "retentionCancelledMs",
};

export function readSettings(
  environment: NodeJS.ProcessEnv,
  options: SettingSource,
): QueueSettings {
  const given: Given = {};
  for (const [name, setting] of Object.entries(ENVIRONMENT)) {
    const text = environment[name];
    if (text === undefined || text === "") continue;
    const value = Number(text);
    if (!Number.isFinite(value))
      throw new QueueError("INVALID_PARAMS", `${name} is "${text}", not a number`);
    given[setting] = name.endsWith("_SECONDS") ? value * 1_000 : value;
  }
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) given[name as keyof QueueSettings] = value;
  }
  return { ...defaultSettings, ...scaled(given), ...given };
}

/** A shortened lease scales the intervals that depend on it, instead of an error. */
function scaled(given: Given): Given {
  const { leaderLeaseMs, retentionMs, taskLeaseMs } = given;
  return {
    // One time for all, unless another is given.
    ...(retentionMs === undefined
      ? {}
      : { retentionFailedMs: retentionMs, retentionCancelledMs: retentionMs }),
    ...(leaderLeaseMs === undefined
      ? {}
      : { leaderRenewMs: Math.min(defaultSettings.leaderRenewMs, leaderLeaseMs / 3) }),
    ...(taskLeaseMs === undefined
      ? {}
      : {
          leaseCleanupMs: Math.min(defaultSettings.leaseCleanupMs, taskLeaseMs / 3),
          heartbeatMs: Math.min(defaultSettings.heartbeatMs, taskLeaseMs / 3),
        }),
  };
}
