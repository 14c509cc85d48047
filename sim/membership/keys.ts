/** The file of secrets that every member reads at its start, and when asked to reload. */

import type { KeyRing } from "../../src/wire/key-ring.ts";
import { ringOf, secretOf } from "../kernel/keys.ts";

export class Keys {
  #count = 1;
  #ring = numbered([1]);
  /** From the first step of a rotation until the last is finished everywhere. */
  rotating = false;

  get ring(): KeyRing {
    return this.#ring;
  }

  /** The three steps of a rotation, each to be finished everywhere before the next begins. (SEC-5) */
  begin(): void {
    this.rotating = true;
    this.#ring = numbered([this.#count, this.#count + 1]);
  }

  use(): void {
    this.#ring = numbered([this.#count + 1, this.#count]);
  }

  remove(): void {
    this.#count++;
    this.#ring = numbered([this.#count]);
  }
}

function numbered(numbers: readonly number[]): KeyRing {
  return ringOf(numbers.map(secretOf));
}
