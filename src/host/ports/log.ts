/** Logs are events: a constant name and fields, never built strings, never secrets or payloads. */

/** From errors that need attention to details for developers. */
const LOG_LEVELS = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
/** Levels that are written: this one and those before it, or none. */
export const LOG_THRESHOLDS = [...LOG_LEVELS, "silent"] as const;
export type LogThreshold = (typeof LOG_THRESHOLDS)[number];

type LogValue = string | number | boolean | null | undefined;
export type LogFields = Readonly<Record<string, LogValue | readonly LogValue[]>>;

export interface Log {
  /** Whether lines of this level are written: callers on a hot path check before they build the fields. */
  enabled(level: LogLevel): boolean;
  event(level: LogLevel, event: string, fields: LogFields): void;
}

export const silentLog: Log = { enabled: () => false, event: () => undefined };
