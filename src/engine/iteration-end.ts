/** Thrown through the body of a flow when its iteration is over; user code that catches it gets it again. */

export class IterationEnd extends Error {
  override readonly name = "IterationEnd";
  readonly outcome: "ended" | "interrupted";
  /** Step whose failure ended it, or the reason passed to `end`. */
  readonly by: string;

  constructor(outcome: IterationEnd["outcome"], by: string) {
    super(`the iteration ${outcome === "ended" ? "ended" : "was interrupted"}: ${by}`);
    this.outcome = outcome;
    this.by = by;
  }
}
