/** What a job has said, numbered: the last lines are kept, and whoever asks late is told how many are gone. */

const LINES_MAX = 1_000;

export class MessageLines {
  #lines: string[] = [];
  /** Number of the first that is kept. */
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

  /** From this number on. */
  from(number: number): readonly string[] {
    const missing = this.#first - number;
    const gone = missing > 0 ? [`(${missing} lines were not kept)`] : [];
    return [...gone, ...this.#lines.slice(Math.max(0, -missing))];
  }
}
