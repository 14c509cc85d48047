/** Logs refused and broken connections, rate-limited against floods. */

import type { LogFields } from "../../../host/ports/log.ts";
import { TokenBucket } from "../../../wire/rate-limit.ts";

const LINES_AT_ONCE = 20;
const LINES_PER_SECOND = 1;

export class Refusals {
  readonly #log: (fields: LogFields) => void;
  #bucket: TokenBucket | null = null;
  #suppressed = 0;

  constructor(log: (fields: LogFields) => void) {
    this.#log = log;
  }

  /** `suppressed` counts the refusals not logged since the last line. */
  note(host: string, problem: string, now: number): void {
    this.#bucket ??= new TokenBucket(LINES_AT_ONCE, LINES_PER_SECOND, now);
    if (!this.#bucket.take(now)) {
      this.#suppressed++;
      return;
    }
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    this.#log({ host, problem, suppressed });
  }
}
