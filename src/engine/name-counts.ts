/** How often each of a few names came; those beyond share one. */

const NAMES_MAX = 20;
const OTHER = "(other)";

export class NameCounts {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    const key = this.#counts.has(name) || this.#counts.size < NAMES_MAX ? name : OTHER;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** "pay (3)". */
  get names(): string[] {
    return [...this.#counts].map(([name, count]) => `${name} (${count})`);
  }
}
