/** Detects a silent cluster, for an interrupted command that still waits for an answer. */

const POLL_MS = 500;

/**
 * Calls back after a number of polls in a row without an answer. It counts polls and not time: a machine that pauses
 * this process for a while does not make the others silent.
 */
export class SilenceWatch {
  readonly #timer: NodeJS.Timeout;
  #answers: number;
  #silentPolls = 0;

  constructor(answers: () => number, pollsMax: () => number, onSilent: () => void) {
    this.#answers = answers();
    this.#timer = setInterval(() => {
      const current = answers();
      this.#silentPolls = current === this.#answers ? this.#silentPolls + 1 : 0;
      this.#answers = current;
      if (this.#silentPolls < pollsMax()) return;
      this.end();
      onSilent();
    }, POLL_MS);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

/** Polls without any answer before a cancel is abandoned: five seconds. */
export const UNANSWERED_POLLS_MAX = 10;
/** Polls for the results of an accepted cancel, as for another gate to take over: half a minute. */
export const ACCEPTED_POLLS_MAX = 60;
