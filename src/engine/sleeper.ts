/** Sleep inside user functions that ends early when the run does. */

import { clearTimeout, setImmediate, setTimeout } from "../protocols/net/timers.ts";

export class Sleeper {
  readonly #sleeping = new Map<NodeJS.Timeout, () => void>();
  #awake = false;

  sleep(ms: number): Promise<void> {
    // Yields even then: `while (…) await sleep(10)` must not starve the timers.
    if (this.#awake || !(ms > 0)) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#sleeping.delete(timer);
        resolve();
      }, ms);
      this.#sleeping.set(timer, resolve);
    });
  }

  wakeAll(): void {
    this.#awake = true;
    for (const [timer, resolve] of this.#sleeping) {
      clearTimeout(timer);
      resolve();
    }
    this.#sleeping.clear();
  }
}
