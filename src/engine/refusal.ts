/** Calls that may not begin because their iteration is over. */

import { setImmediate } from "../protocols/net/timers.ts";
import type { IterationEnd } from "./iteration-end.ts";

/** Refused calls of one scope before its body counts as an endless loop. */
export const REFUSALS_MAX = 100;

/** Rejects on a later turn, so that a loop around it does not starve the core. */
export function refusal(end: IterationEnd): Promise<never> {
  const refused = new Promise<never>((_, reject) => {
    setImmediate(() => reject(end));
  });
  // The promise may not be awaited: that is not an error of its own.
  refused.catch(() => undefined);
  return refused;
}

/** Reports the end of bodies until one is abandoned: another listener takes over then. */
export class BodyListener {
  readonly returned: () => void;
  readonly threw: (error: unknown) => void;
  #isLeftBehind = false;

  constructor(returned: () => void, threw: (error: unknown) => void) {
    this.returned = () => {
      if (!this.#isLeftBehind) returned();
    };
    this.threw = (error) => {
      if (!this.#isLeftBehind) threw(error);
    };
  }

  leaveBehind(): void {
    this.#isLeftBehind = true;
  }
}
