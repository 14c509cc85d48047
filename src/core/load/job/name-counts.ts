/** Counts occurrences of a limited number of names; the rest share one count. */

const NAMES_MAX = 20;
const OTHER = "(other)";

export class NameCounts {
  readonly #counts = new Map<string, number>();

  add(name: string, times = 1): void {
    const key = this.#counts.has(name) || this.#counts.size < NAMES_MAX ? name : OTHER;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + times);
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  get counts(): (readonly [name: string, count: number])[] {
    return [...this.#counts];
  }
}
