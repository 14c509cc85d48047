/** Logs are events: a constant name and fields, never built strings, never secrets or payloads. */

export type LogLevel = "error" | "warn" | "info" | "debug";
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

export interface Log {
  event(level: LogLevel, event: string, fields: LogFields): void;
}
