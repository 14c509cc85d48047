/** Who leads, told to people: a take-over moves thousands of groups at once, so they are told together. */

import type { Background } from "../host/background.ts";

const TOLD_EVERY_MS = 1_000;

export class LeadsReport {
  readonly #background: Background;
  readonly #tell: (gained: number, lost: number) => void;
  #gained = 0;
  #lost = 0;

  constructor(background: Background, tell: (gained: number, lost: number) => void) {
    this.#background = background;
    this.#tell = tell;
  }

  add(leads: boolean): void {
    const first = this.#gained + this.#lost === 0;
    if (leads) this.#gained++;
    else this.#lost++;
    if (!first) return;
    this.#background.after("tell who leads", TOLD_EVERY_MS, () => {
      const [gained, lost] = [this.#gained, this.#lost];
      this.#gained = 0;
      this.#lost = 0;
      this.#tell(gained, lost);
    });
  }
}
