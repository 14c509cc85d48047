/** Counts errors outside the steps: they are in no metric, so the run must not pass. */

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

  /** Code outside the steps threw or timed out. */
  failed(what: string, error: unknown): void {
    const late = error instanceof TimeLimitError;
    const text = late ? error.message : `${what} threw: ${errorText(error)}`;
    this.add({ gate: late ? IN_TIME_GATE : NOTHING_THREW_GATE, text, count: 1 });
  }

  get list(): readonly Fault[] {
    return this.#counts.list;
  }
}
