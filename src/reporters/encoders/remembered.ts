/** Cache of encoded labels for one format, kept as long as the labels: points of one step share them in every frame. */

import type { Frame } from "../reporter.ts";

type Labels = Frame["labels"];

interface Remembered<Value> {
  readonly run: Labels;
  readonly variant: string;
  readonly value: Value;
}

/** `variant`: any other input of the encoding. Keeps the last value per set of labels. */
export function remembered<Value>(
  make: (run: Labels, labels: Labels, variant: string) => Value,
): (run: Labels, labels: Labels, variant?: string) => Value {
  const known = new WeakMap<Labels, Remembered<Value>>();
  return (run, labels, variant = "") => {
    const held = known.get(labels);
    if (held !== undefined && held.run === run && held.variant === variant) return held.value;
    const value = make(run, labels, variant);
    known.set(labels, { run, variant, value });
    return value;
  };
}
