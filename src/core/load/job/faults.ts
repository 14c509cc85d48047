/** Broken rules, by gate and text, with counts: those of several cores are added up. */

/** A broken rule beside what is measured: `gate` names the rule. */
export interface Fault {
  readonly gate: string;
  readonly text: string;
  /** How often; 0 for a condition of the whole run, whichever core reports it. */
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
