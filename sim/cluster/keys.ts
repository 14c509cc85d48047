/** The file of secrets that every member reads: at its start, and when it is told to. */

import { assert } from "../../src/core/base/assert.ts";
import { checksumAead } from "../../src/wire/checksum-aead.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";

export class Keys {
  #count = 1;
  #ring = ringOf([1]);
  /** From the first step of a rotation until the last is finished everywhere. */
  rotating = false;

  get ring(): KeyRing {
    return this.#ring;
  }

  /** The three steps of a rotation, each to be finished everywhere before the next begins. (SEC-5) */
  begin(): void {
    this.rotating = true;
    this.#ring = ringOf([this.#count, this.#count + 1]);
  }

  use(): void {
    this.#ring = ringOf([this.#count + 1, this.#count]);
  }

  remove(): void {
    this.#count++;
    this.#ring = ringOf([this.#count]);
  }
}

function ringOf(numbers: readonly number[]): KeyRing {
  const secrets = numbers.map((number) => `simulated-secret-0123456789-${number}`);
  const made = KeyRing.create(checksumAead, secrets, "sim/sim");
  assert(made.ok, "the simulator's secrets are strong enough");
  return made.ring;
}
