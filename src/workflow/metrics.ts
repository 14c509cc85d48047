/**
 * Custom metrics: created once at the top of a file, fed from anywhere in a workflow.
 *
 *   const cartValue = trend("cart_value");
 *   step("checkout", async ({ http }) => { …; cartValue.add(42, { region: "eu" }); … })
 */

import { DefinitionError } from "./errors.ts";

export type MetricKind = "counter" | "gauge" | "rate" | "trend";
export type MetricTags = Readonly<Record<string, string>>;

/** Receiver of values: set by the executor core while a workflow runs. */
export interface MetricSink {
  add(name: string, kind: MetricKind, value: number, tags: MetricTags): void;
}

let sink: MetricSink | undefined;

export function setMetricSink(next: MetricSink | undefined): void {
  sink = next;
}

const declared = new Map<string, MetricKind>();

export class Metric<
  Value extends number | boolean = never,
  Name extends string = string,
  Kind extends MetricKind = MetricKind,
> {
  readonly name: Name;
  readonly kind: Kind;

  constructor(name: Name, kind: Kind) {
    declareMetric(name, kind);
    this.name = name;
    this.kind = kind;
  }

  add(value: Value, tags: MetricTags = NO_TAGS): void {
    sink?.add(this.name, this.kind, Number(value), tags);
  }
}

const NO_TAGS: MetricTags = Object.freeze({});

export function declareMetric(name: string, kind: MetricKind): void {
  if (!/^[A-Za-z_][\w-]*$/.test(name)) {
    throw new DefinitionError(`"${name}" is not a metric name: use letters, digits, _ and -`);
  }
  const before = declared.get(name);
  if (before !== undefined && before !== kind) {
    throw new DefinitionError(`metric "${name}" is declared both as ${before} and as ${kind}`);
  }
  declared.set(name, kind);
}

/** All metrics declared so far in this process, by any file. */
export function declaredMetrics(): { readonly name: string; readonly kind: MetricKind }[] {
  return [...declared].map(([name, kind]) => ({ name, kind }));
}

/** Adds up. */
export const counter = <Name extends string>(name: Name): Metric<number, Name, "counter"> =>
  new Metric(name, "counter");
/** Keeps the last value, with minimum and maximum. */
export const gauge = <Name extends string>(name: Name): Metric<number, Name, "gauge"> =>
  new Metric(name, "gauge");
/** Share of true among all. */
export const rate = <Name extends string>(name: Name): Metric<boolean, Name, "rate"> =>
  new Metric(name, "rate");
/** Distribution with percentiles, of values of zero or more. */
export const trend = <Name extends string>(name: Name): Metric<number, Name, "trend"> =>
  new Metric(name, "trend");
