/** Broken rules, by gate and text, with how often: those of several cores add up. */

/** Something that must not happen did, beside what is measured: `gate` is the rule it broke. */
export interface Fault {
  readonly gate: string;
  readonly text: string;
  /** How often; 0 for what is so of the whole, whoever tells it. */
  readonly count: number;
}

/** Different texts of one collection; later ones are counted together, by gate. */
const TEXTS_MAX = 20;
const OTHERS = "others";

export class FaultCounts {
  readonly #counts = new Map<
    string,
    { readonly gate: string; readonly text: string; count: number }
  >();

  add({ count, gate, text }: Fault): void {
    const known = this.#counts.get(keyOf(gate, text));
    const kept = known !== undefined || this.#counts.size < TEXTS_MAX ? text : OTHERS;
    const key = keyOf(gate, kept);
    const held = this.#counts.get(key);
    if (held === undefined) this.#counts.set(key, { gate, text: kept, count });
    else held.count += count;
  }

  get list(): readonly Fault[] {
    return [...this.#counts.values()];
  }
}

function keyOf(gate: string, text: string): string {
  return `${gate}\n${text}`;
}

export function singleFault(gate: string, text: string): Fault {
  return { gate, text, count: 1 };
}
