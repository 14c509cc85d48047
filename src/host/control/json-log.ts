/** Structured logs: one JSON object per line, through pino, to any line sink. */

import { type Logger, pino } from "pino";
import type { Log, LogFields, LogLevel, LogThreshold } from "../ports/log.ts";
import { Descriptor, LineWriter } from "./line-writer.ts";

export interface LineSink {
  /** `line` ends with a line break. */
  write(line: string): void;
}

const STDERR = 2;

export class JsonLog implements Log {
  readonly #logger: Logger;

  /** `base` is on every line. */
  constructor(threshold: LogThreshold, base: LogFields, lines: LineSink) {
    this.#logger = pino(
      {
        level: threshold,
        base,
        timestamp: () => `,"at":"${new Date().toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      lines,
    );
  }

  enabled(level: LogLevel): boolean {
    return this.#logger.isLevelEnabled(level);
  }

  event(level: LogLevel, event: string, fields: LogFields): void {
    this.#logger[level]({ event, ...fields });
  }
}

/** A node's log on stderr, for programs that run a node inside themselves. */
export function openLog(threshold: LogThreshold, node: string): Log {
  return new JsonLog(threshold, { node }, new LineWriter(new Descriptor(STDERR)));
}
