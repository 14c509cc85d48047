/**
 * Mixes: one load, shared by several flows.
 *
 *   export default mix([browse.weight(95), buy.weight(5)], { rate: 300, duration: "10m" });
 *
 * Weights are shares of the iterations begun, accurate on every core to within one per flow.
 */

import { WorkflowDefinition } from "./definition.ts";
import { DefinitionError } from "./errors.ts";
import { Flow, type WeightedFlow } from "./flow.ts";
import type { LoadOptions } from "./load-options.ts";
import type { CommonOptions, JudgedOptions, WorkflowOptions } from "./options.ts";
import type {
  CheckedThresholds,
  KnownNames,
  MetricList,
  MetricsOf,
  ThresholdList,
} from "./threshold-types.ts";

export type MixOptions<Name extends string = string, Judged = JudgedOptions> = LoadOptions &
  CommonOptions &
  Judged & {
    /** Name in results and thresholds; "mix" by default. */
    readonly name?: Name;
  };

export class Mix {
  readonly definition: WorkflowDefinition;

  constructor(definition: WorkflowDefinition) {
    this.definition = definition;
  }
}

export function mix<
  Name extends string,
  Own extends string = "mix",
  const Metrics extends MetricList = MetricList,
  const Thresholds extends ThresholdList = ThresholdList,
>(
  flows: readonly WeightedFlow<Name>[],
  options: MixOptions<
    Own,
    JudgedOptions<
      CheckedThresholds<Thresholds, KnownNames<Name | Own, string, MetricsOf<Metrics>>>,
      Metrics
    >
  >,
): Mix {
  const { name = "mix", ...load } = options ?? {};
  const where = `mix "${name}"`;
  if (!Array.isArray(flows) || flows.length === 0)
    throw new DefinitionError(
      `${where} needs flows: mix([browse.weight(95), buy.weight(5)], { … })`,
    );
  const parts = flows.map((part: Partial<WeightedFlow>) => {
    if (!(part?.flow instanceof Flow) || part.weight === undefined)
      throw new DefinitionError(`${where}: write each flow with its weight: browse.weight(95)`);
    return { definition: part.flow.definition, weight: part.weight };
  });
  if ("breakpoint" in load)
    throw new DefinitionError(
      `${where}: the breakpoint is looked for with one flow or workflow, not with a mix`,
    );
  const names = parts.map(({ definition }) => definition.name);
  const twice = [...names, name].find((one, at, all) => all.indexOf(one) !== at);
  if (twice !== undefined) throw new DefinitionError(`${where}: "${twice}" is there twice`);
  return new Mix(new WorkflowDefinition(name, load as WorkflowOptions, null, parts));
}
