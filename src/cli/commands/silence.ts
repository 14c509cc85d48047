/** Whether anybody answers, for a command that was told to end and still waits for a word. */

const LOOK_MS = 500;

/**
 * Calls back once nothing was answered for so many looks in a row. It counts looks and not time: a machine that
 * stops this process for a while does not make the others silent.
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

/** So many looks without any answer, and nobody is there to take a cancel: five seconds. */
export const UNHEARD_LOOKS_MAX = 10;
/** Of a cancel that was taken the results are worth a wait, as for another gate to go on: half a minute. */
export const TAKEN_LOOKS_MAX = 60;
