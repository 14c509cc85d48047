/** Labels of points, the same object for the same labels: what is made of them for a form can be kept. */

export type Labels = Readonly<Record<string, string>>;

const keys = new WeakMap<Labels, string>();

/** The same for equal labels; points of one step share theirs, so it is worked out once for all of them. */
export function labelsKey(labels: Labels): string {
  const known = keys.get(labels);
  if (known !== undefined) return known;
  const key = JSON.stringify(labels);
  keys.set(labels, key);
  return key;
}

/** By what they say: labels that were in a frame before are the very same in the next. */
export class KnownLabels {
  readonly #known = new Map<string, Labels>();
  readonly #most: number;

  /** With more, the rest is as it is given. */
  constructor(most: number) {
    this.#most = most;
  }

  same(labels: Labels): Labels {
    const key = labelsKey(labels);
    const held = this.#known.get(key);
    if (held === undefined && this.#known.size < this.#most) this.#known.set(key, labels);
    return held ?? labels;
  }
}
