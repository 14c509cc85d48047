/** Messages of a job, numbered. The last lines are kept; a late reader gets the number of dropped ones. */

const LINES_MAX = 1_000;

export class MessageLines {
  #lines: string[] = [];
  /** Number of the first line that is kept. */
  #first = 0;

  get next(): number {
    return this.#first + this.#lines.length;
  }

  add(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length <= LINES_MAX) return;
    this.#lines.shift();
    this.#first++;
  }

  /** Lines from this number on. */
  from(number: number): readonly string[] {
    const missing = this.#first - number;
    const gone = missing > 0 ? [`(${missing} lines were not kept)`] : [];
    return [...gone, ...this.#lines.slice(Math.max(0, -missing))];
  }
}
