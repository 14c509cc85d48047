/** What went wrong beside the steps, counted: it is in no figure, so the run must not pass. */

import { errorText } from "../core/base/error-text.ts";

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

  threw(what: string, error: unknown): void {
    this.add("no code beside the steps threw", `${what} threw: ${errorText(error)}`);
  }

  list(): { readonly gate: string; readonly text: string }[] {
    return [...this.#times.values()].map(({ count, gate, text }) => ({
      gate,
      text: count === 1 ? text : `${text} (${count} times)`,
    }));
  }
}
