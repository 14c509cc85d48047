/** Interned labels of points: equal labels are the same object, so that encodings can be cached. */

export type Labels = Readonly<Record<string, string>>;

const keys = new WeakMap<Labels, string>();

/** Same key for equal labels; points of one step share theirs, so it is computed once for all of them. */
export function labelsKey(labels: Labels): string {
  const known = keys.get(labels);
  if (known !== undefined) return known;
  const key = JSON.stringify(labels);
  keys.set(labels, key);
  return key;
}

/** Interns labels by content: labels of an earlier frame are the same object in the next. */
export class KnownLabels {
  readonly #known = new Map<string, Labels>();
  readonly #most: number;

  /** Beyond `most`, labels are returned as given. */
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
