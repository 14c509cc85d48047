/** What is made of labels for one form, kept as long as they are: points of one step have the same in every frame. */

import type { Frame } from "../reporter.ts";

type Labels = Frame["labels"];

interface Remembered<Value> {
  readonly run: Labels;
  readonly variant: string;
  readonly value: Value;
}

/** `variant`: what else it depends on. Of each set of labels the last one is kept. */
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
