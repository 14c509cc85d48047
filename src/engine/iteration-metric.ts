/** A metric of the workflow: computed by a function from an iteration. */

import type { MetricDefinition } from "../workflow/definition.ts";
import type { MetricSink } from "../workflow/metrics.ts";
import type { UserContext } from "./context.ts";
import type { Findings } from "./findings.ts";

export function recordMetric(
  { kind, name, value }: MetricDefinition,
  context: UserContext,
  sink: MetricSink,
  findings: Findings,
): void {
  try {
    const made = value(context);
    if (typeof made === "number" || typeof made === "boolean")
      sink.add(name, kind, Number(made), {});
  } catch (error) {
    findings.complain(`metric "${name}" threw`, error);
  }
}
