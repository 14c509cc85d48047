/** What went wrong beside the steps, counted: it is in no figure, so the run must not pass. */

import { errorText } from "../core/base/error-text.ts";
import { type Fault, FaultCounts } from "../core/load/job/faults.ts";
import { TimeLimitError } from "./time-limit.ts";

const NOTHING_THREW_GATE = "no code beside the steps threw";
const IN_TIME_GATE = "no code beside the steps took too long";

export class Faults {
  readonly #counts = new FaultCounts();

  add(fault: Fault): void {
    this.#counts.add(fault);
  }

  /** Code beside the steps threw, or was given up. */
  failed(what: string, error: unknown): void {
    const late = error instanceof TimeLimitError;
    const text = late ? error.message : `${what} threw: ${errorText(error)}`;
    this.add({ gate: late ? IN_TIME_GATE : NOTHING_THREW_GATE, text, count: 1 });
  }

  get list(): readonly Fault[] {
    return this.#counts.list;
  }
}
