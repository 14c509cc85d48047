/** Calls of functions that no step returned: in no figure, so the results must name them. */

const NAMES_MAX = 20;
const OTHER = "(other)";

export class UnreturnedCalls {
  readonly #counts = new Map<string, number>();

  add(verb: string, path: string): void {
    const query = path.indexOf("?");
    const name = `${verb} ${query < 0 ? path : path.slice(0, query)}`;
    const key = this.#counts.has(name) || this.#counts.size < NAMES_MAX ? name : OTHER;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  notes(workflow: string): string[] {
    if (this.#counts.size === 0) return [];
    const total = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    const names = [...this.#counts].map(([name, count]) => `${name} (${count})`);
    return [
      `"${workflow}": ${total} calls were made by userSetup, actions or steps that did not return ` +
        `them, and are in no figure: ${names.join(", ")}`,
    ];
  }
}
