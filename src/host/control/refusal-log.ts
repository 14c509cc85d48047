/** Refused connections in the log, at a rate that a flood of them cannot raise. */

import { TokenBucket } from "../../wire/rate-limit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

const LINES_AT_ONCE = 20;
const LINES_PER_SECOND = 1;

export class RefusalLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  #suppressed = 0;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.#bucket = new TokenBucket(LINES_AT_ONCE, LINES_PER_SECOND, clock.now());
  }

  /** `suppressed` tells how many were not logged since the last line. */
  note(host: string, problem: string): void {
    if (!this.#bucket.take(this.#clock.now())) {
      this.#suppressed++;
      return;
    }
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    this.#log.event("warn", "stream.refused", { host, problem, suppressed });
  }
}
