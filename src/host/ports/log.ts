/** Logs are events: a constant name and fields, never built strings, never secrets or payloads. */

/** From what wakes someone to what only a developer reads. */
const LOG_LEVELS = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
/** What is written: this level and those before it, or nothing at all. */
export const LOG_THRESHOLDS = [...LOG_LEVELS, "silent"] as const;
export type LogThreshold = (typeof LOG_THRESHOLDS)[number];

type LogValue = string | number | boolean | null | undefined;
export type LogFields = Readonly<Record<string, LogValue | readonly LogValue[]>>;

export interface Log {
  /** Whether lines of this level are written: callers on a hot path ask before they make the fields. */
  enabled(level: LogLevel): boolean;
  event(level: LogLevel, event: string, fields: LogFields): void;
}

export const silentLog: Log = { enabled: () => false, event: () => undefined };
