/** Detects a silent cluster, for an interrupted command that still waits for an answer. */

const LOOK_MS = 500;

/**
 * Calls back after a number of polls in a row without an answer. It counts polls and not time: a machine that pauses
 * this process for a while does not make the others silent.
 */
export class SilenceWatch {
  readonly #timer: NodeJS.Timeout;
  #heard: number;
  #silentLooks = 0;

  constructor(answers: () => number, looksMax: () => number, onSilent: () => void) {
    this.#heard = answers();
    this.#timer = setInterval(() => {
      const heard = answers();
      this.#silentLooks = heard === this.#heard ? this.#silentLooks + 1 : 0;
      this.#heard = heard;
      if (this.#silentLooks < looksMax()) return;
      this.end();
      onSilent();
    }, LOOK_MS);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

/** Polls without any answer before a cancel is abandoned: five seconds. */
export const UNHEARD_LOOKS_MAX = 10;
/** Polls for the results of an accepted cancel, as for another gate to take over: half a minute. */
export const TAKEN_LOOKS_MAX = 60;
