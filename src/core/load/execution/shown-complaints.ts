/** Shows a mistake in user code once per run, though every core meets it. */

/** A line may contain values, and so differ with every iteration. */
const LINES_MAX = 100;

export class ShownComplaints {
  readonly #lines = new Set<string>();

  /** False for a line that was shown, and for all others once `LINES_MAX` were shown. */
  isNew(line: string): boolean {
    if (this.#lines.has(line) || this.#lines.size >= LINES_MAX) return false;
    this.#lines.add(line);
    return true;
  }
}
