/** Structured log lines on stderr: `{ at, level, event, … }`, one per line, constant event names. */

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Log {
  /** Whether lines of this level are written: callers on a hot path ask first. */
  enabled(level: LogLevel): boolean;
  write(
    level: Exclude<LogLevel, "silent">,
    event: string,
    fields?: Readonly<Record<string, unknown>>,
  ): void;
}

export function openLog(
  minimum: LogLevel,
  node: string,
  sink: (text: string) => void = (text) => process.stderr.write(text),
): Log {
  const least = LOG_LEVELS.indexOf(minimum);
  let pending = "";
  const flush = (): void => {
    const text = pending;
    pending = "";
    sink(text);
  };
  return {
    enabled: (level) => LOG_LEVELS.indexOf(level) >= least,
    write(level, event, fields = {}) {
      if (LOG_LEVELS.indexOf(level) < least) return;
      // Lines of one turn of the loop leave in one write.
      if (pending === "") setImmediate(flush);
      pending += `${JSON.stringify({ at: new Date().toISOString(), level, node, event, ...fields })}\n`;
    },
  };
}

export const silentLog: Log = { enabled: () => false, write: () => undefined };
