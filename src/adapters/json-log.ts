/** Structured logs: one JSON object per line on stderr, through pino. */

import { destination, type Logger, pino } from "pino";
import type { Log, LogFields, LogLevel } from "../ports/log.ts";

export class JsonLog implements Log {
  readonly #logger: Logger;

  /** `base` is on every line. Lines are written at once: a log that dies with the process is no log. */
  constructor(level: LogLevel, base: LogFields, fd = 2) {
    this.#logger = pino(
      {
        level,
        base,
        timestamp: () => `,"at":"${new Date().toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      destination({ fd, sync: true }),
    );
  }

  event(level: LogLevel, event: string, fields: LogFields): void {
    this.#logger[level]({ event, ...fields });
  }
}
