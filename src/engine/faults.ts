/** What went wrong beside the steps, counted: it is in no figure, so the run must not pass. */

import { errorText } from "../core/base/error-text.ts";
import { TimeLimitError } from "./time-limit.ts";

const NOTHING_THREW_GATE = "no code beside the steps threw";
const IN_TIME_GATE = "no code beside the steps took too long";
const TEXTS_MAX = 20;

export class Faults {
  readonly #times = new Map<
    string,
    { readonly gate: string; readonly text: string; count: number }
  >();

  add(gate: string, text: string): void {
    const known = this.#times.get(text);
    if (known !== undefined) known.count++;
    else if (this.#times.size < TEXTS_MAX) this.#times.set(text, { gate, text, count: 1 });
  }

  /** Code beside the steps threw, or was given up. */
  failed(what: string, error: unknown): void {
    if (error instanceof TimeLimitError) this.add(IN_TIME_GATE, error.message);
    else this.add(NOTHING_THREW_GATE, `${what} threw: ${errorText(error)}`);
  }

  list(): { readonly gate: string; readonly text: string }[] {
    return [...this.#times.values()].map(({ count, gate, text }) => ({
      gate,
      text: count === 1 ? text : `${text} (${count} times)`,
    }));
  }
}
