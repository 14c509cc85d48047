/** Structured logs: one JSON object per line, through pino, to whoever takes lines. */

import { type Logger, pino } from "pino";
import type { Log, LogFields, LogLevel } from "../ports/log.ts";

export class JsonLog implements Log {
  readonly #logger: Logger;

  /** `base` is on every line. */
  constructor(level: LogLevel, base: LogFields, lines: { write(line: string): void }) {
    this.#logger = pino(
      {
        level,
        base,
        timestamp: () => `,"at":"${new Date().toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      lines,
    );
  }

  event(level: LogLevel, event: string, fields: LogFields): void {
    this.#logger[level]({ event, ...fields });
  }
}
